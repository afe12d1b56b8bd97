"""Whether a process that wrote a row is certainly gone.

Only said of processes of this very machine and pid namespace: containers may share a host name, and each has its pid 1.
A pid alone says nothing, since it may be another's by now; with the start time it is unmistakable.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")


@cache
def this_machine() -> str:
    """Host name, boot and pid namespace: two processes that see this alike see each other's pids."""
    try:
        boot, namespace = _BOOT_ID.read_text().strip(), os.readlink(_PID_NAMESPACE)
    except OSError:
        boot, namespace = "", ""
    return f"{socket.gethostname()} {boot} {namespace}".strip()


def process_start(pid: int) -> int | None:
    """When it started, in clock ticks since boot; None when there is no such process, or only its zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in brackets may hold anything, brackets too; state is the first field after it, start time the twentieth.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def is_gone(machine: str, pid: int | None, started: int | None) -> bool:
    """False also where it cannot be known."""
    if machine != this_machine() or pid is None or started is None:
        return False
    return process_start(pid) != started
