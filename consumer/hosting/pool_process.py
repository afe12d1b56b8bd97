"""SIGTERM that reaches a process of a prefork pool itself, because it was sent to all processes of a service at once.

systemd (KillMode=control-group) and containers do that. The worker's main process gets it, too, and ends its pool in
order: each process finishes what it has in hand. So the signal is ignored here when the main process is shutting down
warmly, which may be a moment later; otherwise somebody meant this process alone (Celery's `revoke(terminate=True)`, a
cold shutdown, an operator), and it takes the effect that billiard gives it.
"""

from __future__ import annotations

import signal
from types import FrameType

from billiard import common as billiard

from consumer.hosting.instance import StopSignals

# How long the main process may take to get the same signal: its handler runs at once, unless the machine is busy.
MAIN_HEARS_WITHIN_S = 2.0


def leave_sigterm_to_main(stop: StopSignals) -> None:
    """Installs the handler in this process. `stop` is set by the main process when it is told to stop.

    The handler waits, but takes no lock (the rule of `remoting/shutdown_signal.py`).
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        if not stop.cold.is_set and stop.shutdown.wait_in_thread(MAIN_HEARS_WITHIN_S):
            return
        billiard.TERMSIGS_DEFAULT.add("SIGTERM")
        billiard.reset_signals()
        signal.raise_signal(number)

    # Else billiard would put its own handler in the place of this one when the process is initialised.
    billiard.TERMSIGS_DEFAULT.discard("SIGTERM")
    signal.signal(signal.SIGTERM, handle)
