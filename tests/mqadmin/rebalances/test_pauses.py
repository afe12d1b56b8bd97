"""How long consumption stood around a rebalance, with the doubt of samples every half minute."""

from __future__ import annotations

import pytest

from mqadmin.clusters.models import Verdict
from mqadmin.lag.hot_window import Gap, TopicSample
from mqadmin.lag.packing import QueueSample
from mqadmin.rebalances.pauses import Pause, pause
from remoting.wire.bodies.message_queue import MessageQueue

START_S = 1_700_000_000
QUEUE, OTHER = MessageQueue("orders", "a", 0), MessageQueue("orders", "a", 1)
END = 1_000


def sample(seconds: int, *queues: tuple[int, int], came: int | None = None) -> TopicSample:
    """`queues`: committed and max offset of queue 0, 1, …; `came`: when the next message came, exactly."""
    since_ms = 0 if came is None else (START_S + came) * 1000
    packed = tuple(QueueSample("a", number, *offsets, since_ms) for number, offsets in enumerate(queues))
    return TopicSample(START_S + seconds, 1, "billing", "orders", Verdict.OK, 1, 0, packed)


def gap(seconds: int, until: int, state: str = "late", brokers: tuple[str, ...] = ()) -> Gap:
    return Gap(START_S + seconds, START_S + until, state, "", brokers)


def judged(*found: TopicSample | Gap, at: int, since: int | None = None, until: int = END) -> Pause | None:
    since = at if since is None else since
    return pause(found, [QUEUE, OTHER], since_s=START_S + since, at_s=START_S + at, until_s=START_S + until)


BUSY = [sample(0, (5, 90)), sample(30, (7, 90)), sample(60, (9, 90)), sample(90, (11, 90))]


@pytest.mark.parametrize(
    ("found", "at", "expected"),
    [
        ([sample(0, (5, 9)), sample(30, (7, 9)), sample(150, (9, 9))], 40, Pause(75, 165, True, QUEUE)),
        (BUSY, 40, Pause(0, 75, True, QUEUE)),
        ([sample(0, (5, 5)), sample(60, (5, 9), came=50), sample(150, (9, 9))], 55, Pause(55, 100, True, QUEUE)),
        ([sample(0, (5, 9)), sample(150, (9, 9))], 40, Pause(105, None, True, QUEUE)),
        ([sample(0, (5, 9), came=-100), sample(150, (9, 9))], 40, Pause(105, 250, True, QUEUE)),
        ([sample(0, (5, 9)), sample(30, (7, 9))], 40, Pause(END - 45 - 30, None, False, QUEUE)),
        ([sample(0, (5, 9)), sample(30, (7, 9)), sample(60)], 40, Pause(0, None, False, QUEUE)),
        ([sample(0, (5, 5), (1, 9)), sample(30, (5, 5), (9, 9))], 500, Pause(0, 0, True)),
        (
            [
                sample(0, (5, 5), (1, 9)),
                sample(30, (5, 9), (2, 9)),
                sample(90, (5, 9), (9, 9)),
                sample(600, (9, 9), (9, 9)),
            ],
            40,
            Pause(525, 615, True, QUEUE),
        ),
        ([], 40, None),
    ],
    ids=[
        "stood between two samples each",
        "moved with each cycle",
        "stood since a message came to a queue that was empty",
        "stood since before the first sample",
        "stood since before the first sample and after a message came",
        "does not move again",
        "stood until the group read its topic no longer",
        "nothing waited",
        "the longest of the queues counts",
        "nothing was sampled",
    ],
)
def test_pause_is_told_by_its_bounds(found: list[TopicSample], at: int, expected: Pause | None) -> None:
    assert judged(*found, at=at) == expected


def test_true_pause_lies_between_the_bounds_wherever_the_cycles_fall() -> None:
    """Consumption stops at 100 s and goes on at 180 s; commits are instant, a message is consumed each second."""

    def committed(at: int) -> int:
        return min(at, 100) + max(0, at - 180)

    for shift in range(30):
        for every in (25, 30, 45):
            found = [sample(at, (committed(at), 9_999)) for at in range(shift, 400, every)]
            one = judged(*found, at=101)
            assert one is not None
            assert one.at_most_s is not None
            assert one.at_least_s <= 80 <= one.at_most_s, (shift, every, one)


def test_pause_elsewhere_in_time_is_not_this_rebalances() -> None:
    found = [
        sample(0, (5, 90)),
        sample(30, (7, 90)),
        sample(300, (9, 90)),
        sample(330, (11, 90)),
        sample(360, (12, 90)),
    ]
    assert judged(*found, at=345, until=370) == Pause(0, 75, True, QUEUE)


def test_moment_of_a_rebalance_that_members_told_late_has_a_doubt_of_its_own() -> None:
    found = [
        sample(0, (5, 90)),
        sample(30, (7, 90)),
        sample(300, (9, 90)),
        sample(330, (11, 90)),
        sample(360, (12, 90)),
    ]
    assert judged(*found, at=400, since=200, until=420) == Pause(225, 315, True, QUEUE)


def test_gap_leaves_the_end_open_and_what_is_in_it_unknown() -> None:
    found = [sample(0, (5, 90)), sample(30, (7, 90)), gap(120, 300), sample(300, (9, 90)), sample(330, (10, 90))]
    assert judged(*found, at=40) == Pause(45, None, False, QUEUE)
    assert judged(*found, at=200) is None


def test_brokers_that_did_not_answer_leave_a_gap() -> None:
    found = [sample(0, (5, 90)), gap(30, 90, "partial"), sample(60, (5, 90)), sample(90, (5, 90)), sample(120, (6, 90))]
    assert judged(*found, at=70) is None


def of_two_brokers(seconds: int, a: tuple[int, int], b: tuple[int, int]) -> TopicSample:
    """`a`, `b`: committed and max offset of queue 0 of either broker."""
    queues = (QueueSample("a", 0, *a), QueueSample("b", 0, *b))
    return TopicSample(START_S + seconds, 1, "billing", "orders", Verdict.OK, 1, 0, queues)


def pause_of(queue: MessageQueue, found: list[TopicSample | Gap], at: int) -> Pause | None:
    return pause(found, [queue], since_s=START_S + at, at_s=START_S + at, until_s=START_S + END)


SILENT: list[TopicSample | Gap] = [
    of_two_brokers(0, (5, 90), (5, 90)),
    of_two_brokers(30, (7, 90), (7, 90)),
    gap(60, 90, "partial", ("b",)),
    of_two_brokers(120, (9, 90), (7, 90)),
    of_two_brokers(150, (11, 90), (9, 90)),
]


def test_broker_that_does_not_answer_leaves_no_gap_in_the_queues_of_the_others() -> None:
    assert pause_of(QUEUE, SILENT, at=70) == Pause(45, 135, True, QUEUE)


def test_broker_that_does_not_answer_leaves_a_gap_in_its_own_queues() -> None:
    assert pause_of(QUEUE._replace(broker_name="b"), SILENT, at=70) is None


def test_stale_rows_of_a_silent_broker_are_no_samples_while_another_one_is_silent_for_longer() -> None:
    found: list[TopicSample | Gap] = [
        of_two_brokers(0, (5, 90), (5, 90)),
        gap(30, 60, "partial", ("a", "b")),
        gap(61, 120, "partial", ("b",)),
        of_two_brokers(90, (6, 90), (5, 90)),
        of_two_brokers(120, (7, 90), (5, 90)),
        of_two_brokers(150, (8, 90), (9, 90)),
    ]
    assert pause_of(QUEUE, found, at=100) == Pause(0, 75, True, QUEUE)
    assert pause_of(QUEUE._replace(broker_name="b"), found, at=100) is None


def test_partial_gap_whose_brokers_are_not_known_is_one_of_all() -> None:
    found = [one._replace(brokers=()) if isinstance(one, Gap) else one for one in SILENT]
    assert pause_of(QUEUE, found, at=70) is None
