"""What the queues of a group add up to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.clusters import waiting
from mqadmin.lag.sums import GroupRows, QueueEnd, QueueRow, sums
from remoting.wire.bodies.message_queue import MessageQueue

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def seen(*samples: tuple[int, int]) -> bytes:
    """Returns the history of a queue's end: so many seconds before now, its max offset."""
    packed = b""
    for ago_s, max_offset in samples:
        packed = waiting.noted(packed, int(NOW.timestamp()) - ago_s, max_offset)
    return packed


@pytest.mark.parametrize(
    ("samples", "method"),
    [
        pytest.param(((45, 5), (30, 9)), "store_time", id="the other came later"),
        pytest.param(((75, 5), (45, 9)), "observed", id="the other may have come before"),
        pytest.param(((45, 9),), "observed", id="the other was there when it was first asked"),
    ],
)
def test_a_group_waits_exactly_where_no_queue_can_have_waited_longer(
    samples: tuple[tuple[int, int], ...], method: str
) -> None:
    exact, other = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-a", 1)
    since = NOW - timedelta(seconds=60)
    total = sums(
        GroupRows(
            rows=[QueueRow(*exact, 1, 5, since, since, "store_time"), QueueRow(*other, 2, 5, since)],
            ends={exact: QueueEnd(9, b"", None), other: QueueEnd(9, seen(*samples), None)},
        ),
        away=(),
    )
    assert (total.behind.since, total.behind.method) == (since, method)
