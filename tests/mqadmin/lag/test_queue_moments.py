"""What queues were lately: a gap takes the past of the queues that it is about, and of no others."""

from __future__ import annotations

import pytest

from mqadmin.clusters.models import Verdict
from mqadmin.lag.hot_window import Gap, TopicSample
from mqadmin.lag.packing import QueueSample
from mqadmin.lag.queue_moments import moments
from remoting.wire.bodies.message_queue import MessageQueue

START_S = 1_700_000_000


def sample(seconds: int, **committed: int) -> TopicSample:
    """`committed`: by broker, of its queue 0."""
    queues = tuple(QueueSample(broker, 0, offset, 90) for broker, offset in committed.items())
    return TopicSample(START_S + seconds, 1, "billing", "orders", Verdict.OK, 1, 0, queues)


def gap(seconds: int, until: int, state: str, *brokers: str) -> Gap:
    return Gap(START_S + seconds, START_S + until, state, "", brokers)


def offsets(*found: TopicSample | Gap) -> dict[str, list[int | None]]:
    past = moments(found, {MessageQueue("orders", broker, 0) for broker in ("a", "b")})
    return {queue.broker_name: [one.sample.committed_offset for one in some] for queue, some in past.items()}


@pytest.mark.parametrize(
    ("between", "known"),
    [
        (gap(30, 90, "partial", "b"), {"a": [1, 3, 5, 7], "b": [8]}),
        (gap(30, 90, "partial", "a", "b"), {"a": [7], "b": [8]}),
        (gap(30, 90, "partial"), {"a": [3, 5, 7], "b": [4, 6, 8]}),
        (gap(0, 60, "late"), {"a": [3, 5, 7], "b": [4, 6, 8]}),
    ],
    ids=["one broker was silent", "both were silent", "it is not known which were", "nothing was sampled"],
)
def test_a_gap_takes_the_past_of_the_queues_that_it_is_about(between: Gap, known: dict[str, list[int]]) -> None:
    assert (
        offsets(sample(0, a=1, b=2), between, sample(60, a=3, b=4), sample(90, a=5, b=6), sample(120, a=7, b=8))
        == known
    )
