"""Decides whether a process that wrote a row is certainly gone.

Known only of processes of this machine and pid namespace: containers may share a host name, and each has a pid 1. A pid
may have been reused, so the start time is compared too. macOS has no /proc: there a process is gone when its pid is
free, and one whose pid was reused is given up by its missing heartbeats.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_HAS_PROC = Path("/proc/self/stat").exists()


@cache
def this_machine() -> str:
    """Returns host name, boot id and pid namespace: processes with the same value see each other's pids."""
    try:
        boot, namespace = _BOOT_ID.read_text().strip(), os.readlink(_PID_NAMESPACE)
    except OSError:
        boot, namespace = "", ""
    return f"{socket.gethostname()} {boot} {namespace}".strip()


def process_start(pid: int) -> int | None:
    """Returns its start in clock ticks since boot; None when there is no such process, or only its zombie.

    Without /proc the start is 0 for every process.
    """
    if not _HAS_PROC:
        return 0 if _exists(pid) else None
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in brackets may hold anything, brackets too; state is the first field after it, start time the twentieth.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def is_process_gone(machine: str, pid: int | None, started: int | None) -> bool:
    """Returns False also when that cannot be known."""
    if machine != this_machine() or pid is None or started is None:
        return False
    return process_start(pid) != started
