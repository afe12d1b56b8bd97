"""When queues stand because of a listener that takes long: a table, and what a property says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqadmin.clusters.held_queues import HeldQueue
from mqadmin.lag.in_flight import BELIEVED_FOR, Held, StandingQueue, in_flight, latest
from remoting.wire.bodies.message_queue import MessageQueue

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
FIRST, SECOND = MessageQueue("orders", "a", 0), MessageQueue("orders", "a", 1)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def stands(seconds: float, queue: MessageQueue = FIRST) -> StandingQueue:
    return StandingQueue(queue, ago(seconds))


def says(
    count: int, told_s: float = 5, timeout_s: int | None = 900, *, queue: MessageQueue = FIRST, is_failing: bool = False
) -> Held:
    return Held(HeldQueue(queue, 7, 0.0, count, is_failing), ago(told_s), timeout_s)


CASES = {
    "a message in flight": ([stands(100)], [says(1)], (100, 900, 1, 1)),
    "two queues of two members": (
        [stands(100), stands(300, SECOND)],
        [says(2), says(3, timeout_s=600, queue=SECOND)],
        (300, 600, 5, 2),
    ),
    "another queue moves": ([stands(100), stands(10, SECOND)], [says(1)], (100, 900, 1, 1)),
    "nothing stands": ([stands(59)], [says(1)], None),
    "nothing is in flight": ([stands(100)], [says(0)], None),
    "nobody says that it holds the queue": ([stands(100)], [], None),
    "one of two queues stands for another reason": ([stands(100), stands(100, SECOND)], [says(1)], None),
    "in flight for longer than it may": ([stands(900)], [says(1)], None),
    "how long it may take is not told": ([stands(100)], [says(1, timeout_s=None)], None),
    "the same message comes again and again": ([stands(100)], [says(1, is_failing=True)], None),
    "the word is older than the standing": ([stands(100)], [says(1, told_s=101)], None),
    "the member has said nothing since": ([stands(600)], [says(1, told_s=BELIEVED_FOR.total_seconds())], None),
}


@pytest.mark.parametrize(("standing", "told", "expected"), CASES.values(), ids=CASES.keys())
def test_what_is_in_flight_on_the_queues_that_stand(
    standing: list[StandingQueue], told: list[Held], expected: tuple[int, int, int, int] | None
) -> None:
    found = in_flight(standing, latest(told), NOW)
    assert (found and (found.stood_s, found.timeout_s, found.message_count, found.queue_count)) == expected


def test_it_is_looked_at_again_when_it_may_be_over() -> None:
    by_timeout = in_flight([stands(100)], latest([says(1, timeout_s=120)]), NOW)
    by_silence = in_flight([stands(100)], latest([says(1, told_s=10)]), NOW)
    assert by_timeout is not None
    assert by_timeout.until == ago(-20)
    assert by_silence is not None
    assert by_silence.until == ago(10) + BELIEVED_FOR


def test_of_two_that_say_that_they_hold_a_queue_the_later_word_counts() -> None:
    assert latest([says(3, told_s=1), says(5, told_s=9)])[FIRST].of.in_flight_count == 3


@given(
    stood_s=st.floats(0, 10**5),
    told_s=st.floats(0, 10**5),
    timeout_s=st.none() | st.integers(0, 10**5),
    count=st.integers(0, 10**6),
)
def test_nothing_is_excused_beyond_its_timeout_or_without_a_message_in_flight(
    stood_s: float, told_s: float, timeout_s: int | None, count: int
) -> None:
    found = in_flight([stands(stood_s)], latest([says(count, told_s, timeout_s)]), NOW)
    if found is not None:
        assert timeout_s is not None
        assert stood_s < timeout_s + 1
        assert count > 0
        assert told_s <= 151
