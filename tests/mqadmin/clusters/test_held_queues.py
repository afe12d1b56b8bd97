"""What members say that they have in flight: what was not told is not known, and not 0."""

from __future__ import annotations

import pytest

from mqadmin.clusters.held_queues import HeldQueue, in_flight_sum
from remoting.wire.bodies.message_queue import MessageQueue


def held(next_offset: int | None, count: int = 0) -> HeldQueue:
    return HeldQueue(MessageQueue("orders", "a", 0), next_offset, 0, count)


@pytest.mark.parametrize(
    ("queues", "count"),
    [
        ([held(7, 3), held(7, 2)], 5),
        ([held(7, 0)], 0),
        ([held(7, 3), held(None)], 3),
        ([held(None, 4)], 4),
        ([held(None)], None),
        ([], None),
    ],
    ids=["of both", "none in flight", "one told nothing", "offset not told", "nothing told", "no queue"],
)
def test_in_flight_is_the_sum_of_what_was_told(queues: list[HeldQueue], count: int | None) -> None:
    assert in_flight_sum(queues) == count
