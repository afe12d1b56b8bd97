from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from consumer.hosting.instance import StopSignals
from consumer.hosting.thread_pool import AGAIN, end_without_killing
from remoting.shutdown_signal import ShutdownSignal


class Celery:
    """What Celery's handler of SIGTERM is told; `during` is raised while it runs for the first time."""

    def __init__(self) -> None:
        self.signals = StopSignals(shutdown=ShutdownSignal(), cold=ShutdownSignal())
        self.warm_count = 0
        self.during: signal.Signals | None = None

    def warm(self, _number: int, _frame: FrameType | None) -> None:
        self.warm_count += 1
        raised, self.during = self.during, None
        if raised is not None:
            signal.raise_signal(raised)
        self.signals.shutdown.set()


@pytest.fixture
def celery() -> Iterator[Celery]:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
    before = {number: signal.getsignal(number) for number in numbers}
    celery = Celery()
    signal.signal(signal.SIGTERM, celery.warm)
    end_without_killing(celery.signals)
    yield celery
    for number, handler in before.items():
        signal.signal(number, handler)


def test_one_ctrl_c_ends_as_sigterm_does_and_says_what_a_second_one_does(
    celery: Celery, capfd: pytest.CaptureFixture[str]
) -> None:
    signal.raise_signal(signal.SIGINT)
    assert celery.warm_count == 1
    assert not celery.signals.cold.is_set
    assert capfd.readouterr().err == AGAIN.decode()
    signal.raise_signal(signal.SIGINT)
    assert celery.signals.cold.is_set


def test_a_second_ctrl_c_while_the_first_is_handled_is_heard(celery: Celery) -> None:
    celery.during = signal.SIGINT
    signal.raise_signal(signal.SIGINT)
    assert celery.signals.cold.is_set
    assert celery.signals.shutdown.is_set


def test_sigquit_ends_at_once(celery: Celery) -> None:
    signal.raise_signal(signal.SIGQUIT)
    assert celery.warm_count == 1
    assert celery.signals.cold.is_set
    assert celery.signals.shutdown.is_set
