"""SIGTERM that reaches a process of a prefork pool itself, because it was sent to all processes of a service at once.

systemd (KillMode=control-group) and containers do that. The worker's main process gets it, too, and ends its pool in
order: each process finishes what it has in hand. So the signal is ignored here when the main process is shutting down
warmly, which may be a moment later; otherwise somebody meant this process alone (Celery's `revoke(terminate=True)`, a
cold shutdown, an operator), and it takes the effect that billiard gives it.

Until a new process has this handler it would die by the signal: Celery resets SIGTERM first of all, and then prepares
the process for a second and more on a busy machine. So it is forked with SIGTERM blocked. One that arrives meanwhile
waits for the handler.
"""

from __future__ import annotations

import os
import re
import signal
from types import FrameType

from billiard import common as billiard

from consumer.hosting.instance import StopSignals

# How long the main process may take to get the same signal: its handler runs at once, unless the machine is busy.
MAIN_HEARS_WITHIN_S = 2.0
# So often it is waited for anew while the signal waits for the main process, which a machine that swaps may halt.
WAITS_MAX = 30
_WAITING_SIGNALS = re.compile(rb"^ShdPnd:\s*([0-9a-f]+)$", re.MULTILINE)


class _BlockedOverFork:
    """Blocks SIGTERM in the main process just before a fork, and unblocks it in both processes, each in its time."""

    def __init__(self) -> None:
        self._is_wanted = False
        self._is_blocked_here = False
        os.register_at_fork(before=self._block, after_in_parent=self.unblock)

    def want(self) -> None:
        self._is_wanted = True

    def _block(self) -> None:
        if self._is_wanted:
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            self._is_wanted, self._is_blocked_here = False, signal.SIGTERM not in before

    def unblock(self) -> None:
        """Leaves SIGTERM blocked where it was before the fork."""
        if self._is_blocked_here:
            self._is_blocked_here = False
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


_sigterm = _BlockedOverFork()


def hold_sigterm() -> None:
    """Has SIGTERM blocked in the process of the pool that is forked next, until `let_sigterm_in` is called there."""
    _sigterm.want()


def let_sigterm_in() -> None:
    """Unblocks SIGTERM in this process; where it isn't blocked, or was so before the fork, nothing changes."""
    _sigterm.unblock()


def leave_sigterm_to_main(stop: StopSignals) -> None:
    """Installs the handler in this process. `stop` is set by the main process when it is told to stop.

    The handler waits, and reads what the kernel says of the main process, but takes no lock that others have (the rule
    of `remoting/shutdown_signal.py`).
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        if not stop.cold.is_set and _main_hears(stop):
            return
        billiard.TERMSIGS_DEFAULT.add("SIGTERM")
        billiard.reset_signals()
        signal.raise_signal(number)

    # Else billiard would put its own handler in the place of this one when the process is initialised.
    billiard.TERMSIGS_DEFAULT.discard("SIGTERM")
    signal.signal(signal.SIGTERM, handle)


def _main_hears(stop: StopSignals) -> bool:
    """Waits for the main process to be told to stop; returns False when the signal was meant for this process alone."""
    main = os.getppid()
    waited = _sigterm_waits_for(main)
    for _ in range(WAITS_MAX):
        if stop.shutdown.wait_in_thread(MAIN_HEARS_WITHIN_S):
            return True
        waits = _sigterm_waits_for(main)
        if not (waited or waits):
            return False
        waited = waits
    return False


def _sigterm_waits_for(pid: int) -> bool:
    """Tells whether the process was sent SIGTERM and has not yet run to handle it; where Linux does not say, False."""
    try:
        with open(f"/proc/{pid}/status", "rb", buffering=0) as status:
            found = _WAITING_SIGNALS.search(status.read())
    except OSError:
        return False
    return found is not None and bool(int(found[1], 16) >> (signal.SIGTERM - 1) & 1)
