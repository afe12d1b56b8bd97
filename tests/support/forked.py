"""A step in a process that is forked from the one that runs the tests, which ends whatever the step does."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable

# Seconds; a step takes milliseconds. A child that waits for ever has the test fail, and not the run wait for it: a test
# that waits for a child in a thread is not ended by pytest's own time-out.
ENDS_WITHIN_S = 180


def fork(step: Callable[[], object]) -> int:
    """Runs `step` in a forked process; returns its pid. Where `step` raises, that is shown on standard error."""
    child = os.fork()
    if child != 0:
        return child
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(ENDS_WITHIN_S)
        step()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def exit_code(child: int) -> int:
    """Waits for a forked process to end. Returns 0, 1 where its step raised, -SIGALRM where it took too long."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def exit_code_of(step: Callable[[], object]) -> int:
    return exit_code(fork(step))
