"""How many messages died, and how many were retried lately: differences of totals that only grow."""

from __future__ import annotations

import pytest

from mqadmin.lag.failing import WINDOW_S, Failing, FailingSample, Totals, appended, counted

START_S = 1_000_000_020


def sample(
    at_s: int, dead: int = 0, retried: int = 0, consumed: int = 0, queues: int = 1, brokers: int = 1
) -> FailingSample:
    return FailingSample(START_S + at_s, Totals(dead, retried, consumed, queues, queues, brokers))


def kept(*samples: FailingSample) -> bytes:
    packed = b""
    for one in samples:
        packed = appended(packed, one)
    return packed


def test_example_of_the_docstring() -> None:
    packed = kept(sample(0, 7, 40), sample(210, 7, 52), sample(480, 9, 61))
    assert counted(packed, START_S + 540) == Failing(died=2, retried=21, retried_late=9)


def test_what_was_there_at_first_did_not_die_now() -> None:
    assert counted(kept(sample(0, 1000, 50)), START_S + 1) == Failing()


def test_what_died_counts_for_ten_minutes() -> None:
    packed = kept(sample(0, 3), sample(4000, 5))
    assert counted(packed, START_S + 4000 + WINDOW_S - 1).died == 2
    assert counted(packed, START_S + 4000 + WINDOW_S).died == 0


def test_first_dead_letter_of_a_group_counts_though_its_topic_is_new() -> None:
    first = FailingSample(START_S, Totals(0, 4, 9, 0, 1))
    packed = kept(first, FailingSample(START_S + 2, Totals(1, 4, 9, 1, 1)))
    assert counted(packed, START_S + 2).died == 1


@pytest.mark.parametrize(
    "later",
    [sample(60, 400, queues=2), sample(60, 1), sample(60, 3), sample(60, 400, brokers=2)],
    ids=["seen with more queues", "made anew with fewer", "unchanged", "told by other brokers"],
)
def test_nothing_died_where_totals_cannot_be_compared(later: FailingSample) -> None:
    assert counted(kept(sample(0, 3), later), START_S + 60).died == 0


@pytest.mark.parametrize("brokers", [1, 2], ids=["asked for later", "with a broker that came"])
def test_retries_that_were_there_when_they_were_first_asked_for_are_no_news(brokers: int) -> None:
    before = FailingSample(START_S, Totals(0, 0, 100, 0, 0, 1))
    packed = kept(before, FailingSample(START_S + 60, Totals(0, 5000, 110, 0, 1, brokers)))
    assert counted(packed, START_S + 60).retried == 0
    packed = appended(packed, FailingSample(START_S + 120, Totals(0, 5003, 120, 0, 1, brokers)))
    assert counted(packed, START_S + 120).retried == 3


def test_topic_that_a_new_broker_brings_holds_no_news_until_it_grows() -> None:
    before = FailingSample(START_S, Totals(0, 0, 0, 0, 0, 1))
    packed = kept(before, FailingSample(START_S + 60, Totals(400, 0, 0, 1, 0, 2)))
    assert counted(packed, START_S + 60).died == 0
    packed = appended(packed, FailingSample(START_S + 90, Totals(401, 0, 0, 1, 0, 2)))
    assert counted(packed, START_S + 90).died == 1


def test_what_died_before_a_broker_came_counts_on() -> None:
    packed = kept(sample(0, 3, 7, 50), sample(60, 5, 8, 70), sample(120, 405, 900, 9000, queues=2, brokers=2))
    assert counted(packed, START_S + 120) == Failing(died=2, retried=1, retried_late=1, consumed=20)


def test_consumed_counts_while_something_fails_alone() -> None:
    """For an hour nothing failed, and no sample was taken: what was consumed then is not of these minutes."""
    packed = kept(sample(0, 0, 0, 100), sample(3600, 0, 5, 90_000), sample(3660, 0, 9, 90_040))
    assert counted(packed, START_S + 3660) == Failing(retried=9, retried_late=9, consumed=40)


def test_group_of_which_nothing_fails_is_not_written_again() -> None:
    packed = kept(sample(0, 2, 2, 0))
    assert appended(packed, sample(3600, 2, 2, 10**6)) == packed


def test_history_is_bounded_however_much_fails() -> None:
    packed = kept(*(sample(second, second, second, second) for second in range(0, 5000, 3)))
    assert len(packed) <= 36 * (WINDOW_S // 30 + 2)
    assert 580 <= counted(packed, START_S + 4998).died <= WINDOW_S + 30
