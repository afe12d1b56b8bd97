"""The bounds of all connections together: who is cut, and that the others stay."""

from __future__ import annotations

import pytest

from remoting.shares import ROUND_S, TURN_S_MAX, TURN_S_MIN, Shares


class FakeSharer:
    def __init__(self, owed_bytes: int = 0) -> None:
        self.owed_bytes = owed_bytes
        self.reasons: list[str] = []

    def cut(self, reason: str) -> None:
        self.reasons.append(reason)


def test_of_half_received_requests_the_one_without_progress_for_longest_goes() -> None:
    shares = Shares(received_bytes_max=100)
    stalled, busy, last = FakeSharer(), FakeSharer(), FakeSharer()
    shares.received(stalled, 40, has_progressed=False)
    shares.received(busy, 40, has_progressed=False)
    shares.received(stalled, 45, has_progressed=False)
    assert not stalled.reasons
    shares.received(last, 20, has_progressed=False)
    assert ["105 bytes" in reason for reason in stalled.reasons] == [True]
    assert not busy.reasons
    assert not last.reasons
    assert shares.received_bytes == 60


def test_who_makes_progress_is_not_the_oldest_any_more() -> None:
    shares = Shares(received_bytes_max=100)
    first, second = FakeSharer(), FakeSharer()
    shares.received(first, 50, has_progressed=False)
    shares.received(second, 50, has_progressed=False)
    shares.received(first, 55, has_progressed=True)
    assert second.reasons
    assert not first.reasons


def test_of_what_is_owed_the_largest_goes() -> None:
    shares = Shares(owed_bytes_max=100)
    small, large = FakeSharer(40), FakeSharer(70)
    shares.written(small, 40)
    shares.written(large, 70)
    assert large.reasons
    assert not small.reasons
    assert shares.owed_bytes == 40


def test_what_peers_have_read_meanwhile_does_not_count() -> None:
    shares = Shares(owed_bytes_max=100)
    reading, other = FakeSharer(90), FakeSharer(90)
    shares.written(reading, 90)
    reading.owed_bytes = 0
    shares.written(other, 90)
    assert not reading.reasons
    assert not other.reasons
    assert shares.owed_bytes == 90


def test_nothing_remains_of_who_is_gone() -> None:
    shares = Shares()
    sharer = FakeSharer(5)
    shares.received(sharer, 10, has_progressed=False)
    shares.written(sharer, 5)
    shares.gone(sharer)
    shares.gone(sharer)
    assert (shares.received_bytes, shares.owed_bytes) == (0, 0)


@pytest.mark.parametrize(
    ("busy_count", "turn_s"),
    [(0, TURN_S_MAX), (1, TURN_S_MAX), (10, ROUND_S / 10), (1000, TURN_S_MIN)],
    ids=["nobody", "one", "ten", "a thousand"],
)
def test_the_more_are_busy_the_shorter_is_a_turn(busy_count: int, turn_s: float) -> None:
    shares = Shares()
    shares.busy_count = busy_count
    assert shares.turn_s == turn_s
