"""Has a child process get a signal when its parent is gone, even one that was killed: from the kernel or a watcher.

Both functions run in the child, after the fork and before its program. On Linux the kernel sends the signal. macOS has
nothing like it: there a small process beside each child checks twice a second whether the parent still runs.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
CHECK_INTERVAL_S = 0.5
# More than an install's parent has open; closing one that is not open costs nothing much.
_DESCRIPTORS_MAX = 4_096

# Of the parent's pid and the number of the signal.
EndWithParent = Callable[[int, int], None]


def ask_kernel(parent: int, number: int) -> None:
    """Has the kernel send signal `number` to this process when `parent` dies; ends it when that has happened."""
    assert _LIBC is not None
    _LIBC.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def set_subreaper(*, is_on: bool) -> None:
    """Has the kernel make processes below this one its children when they lose their parent, or no longer. On Linux."""
    assert _LIBC is not None
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0)


def start_watcher(parent: int, number: int) -> None:
    """Forks a process that sends signal `number` to this one when `parent` is gone, and that ends with this one."""
    child = os.getpid()
    if os.fork() != 0:
        return
    try:
        # An inherited pipe would keep its other end waiting.
        os.closerange(0, _DESCRIPTORS_MAX)
        for ignored in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ignored, signal.SIG_IGN)
        while os.getppid() == child:
            if not _is_running(parent):
                os.kill(child, number)
                break
            time.sleep(CHECK_INTERVAL_S)
    finally:
        os._exit(0)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


END_WITH_PARENT: EndWithParent = ask_kernel if _LIBC is not None else start_watcher
