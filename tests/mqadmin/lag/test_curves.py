"""Curves: what held at each step, rates between two, and nothing where nothing was sampled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mqadmin.clusters.models import Verdict
from mqadmin.lag.curves import POINTS_MAX, drawn
from mqadmin.lag.hot_window import Gap, TopicSample
from mqadmin.lag.packing import QueueSample

START_S = 1_700_000_010
START = datetime.fromtimestamp(START_S, UTC)


def sample(seconds: int, *queues: tuple[int, int], topic: str = "orders") -> TopicSample:
    """`queues`: committed and max offset of queue 0, 1, …"""
    packed = tuple(QueueSample("a", number, *offsets) for number, offsets in enumerate(queues))
    return TopicSample(START_S + seconds, 1, "billing", topic, Verdict.OK, 1, 0, packed)


def test_step_has_what_held_and_the_rates_since_the_one_before() -> None:
    found = drawn([sample(0, (10, 10)), sample(60, (40, 100))], [], START, START + timedelta(seconds=120))
    assert [point.lag for point in found.points] == [0, 60, 60, 60]
    assert [point.in_per_s for point in found.points] == [None, 3.0, 0.0, 0.0]
    assert [point.out_per_s for point in found.points] == [None, 1.0, 0.0, 0.0]


def test_nothing_is_drawn_across_a_gap() -> None:
    samples = [sample(0, (1, 1)), sample(120, (5, 9))]
    found = drawn(samples, [Gap(START_S + 30, START_S + 120, "late", "")], START, START + timedelta(seconds=180))
    assert [point.lag for point in found.points] == [0, None, None, None, 4, 4]
    assert [point.in_per_s for point in found.points][:5] == [None] * 5


def test_offset_that_was_moved_back_is_no_rate() -> None:
    found = drawn([sample(0, (9, 9)), sample(60, (1, 9))], [], START, START + timedelta(seconds=60))
    assert found.points[-1].out_per_s is None
    assert found.points[-1].lag == 8


def test_fullest_queue_comes_first_and_the_skew_says_how_full_it_is() -> None:
    found = drawn([sample(0, (0, 1), (0, 9))], [], START, START + timedelta(seconds=30))
    assert [(curve.queue.queue_id, curve.lag) for curve in found.queues] == [(1, 9), (0, 1)]
    assert found.skew == 1.8


def test_dead_letters_are_counted_and_are_no_lag() -> None:
    dead = TopicSample(START_S, 1, "billing", "%DLQ%billing", Verdict.OK, 1, 0, (QueueSample("a", 0, None, 3),))
    found = drawn([sample(0, (1, 1)), dead], [], START, START + timedelta(seconds=30))
    assert (found.points[0].lag, found.points[0].dead) == (0, 3)


def test_topic_of_dead_letters_that_was_deleted_holds_none_any_more() -> None:
    dead = TopicSample(START_S, 1, "billing", "%DLQ%billing", Verdict.OK, 1, 0, (QueueSample("a", 0, None, 3),))
    gone = dead._replace(at_s=START_S + 60, queues=())
    found = drawn([sample(0, (1, 1)), dead, gone], [], START, START + timedelta(seconds=90))
    assert [point.dead for point in found.points] == [3, None, None]


def test_two_days_have_no_more_points_than_a_screen() -> None:
    found = drawn([sample(0, (1, 2))], [], START, START + timedelta(days=2))
    assert len(found.points) <= POINTS_MAX


def test_wait_counts_up_to_the_cycle_that_saw_it_and_not_beyond() -> None:
    def waiting(seconds: int, since: int) -> TopicSample:
        queue = QueueSample("a", 0, seconds, seconds + 1, (START_S + since) * 1000)
        return TopicSample(START_S + seconds, 1, "billing", "orders", Verdict.OK, 1, 0, (queue,))

    found = drawn([waiting(1, 0), waiting(31, 29)], [], START, START + timedelta(seconds=150))
    assert [point.waiting_s for point in found.points] == [1, 2, 31, 61, 91], "then it stands"
