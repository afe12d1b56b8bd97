"""What the rows of a group's queues say, as the hot window keeps it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from mqadmin.clusters import figures, waiting
from mqadmin.clusters.figures import Behind
from mqadmin.clusters.models import WaitingMethod
from mqadmin.lag.packing import QueueSample
from mqadmin.lag.sums import GroupRows, QueueEnd, QueueRow, end_of
from remoting.wire.bodies.message_queue import MessageQueue


def by_topic(of_group: GroupRows) -> dict[str, tuple[QueueSample, ...]]:
    """Returns the queues of each topic that counts for the group, in order."""
    topics: defaultdict[str, list[QueueSample]] = defaultdict(list)
    for row in of_group.rows:
        topics[row.topic_name].append(_queue(row, end_of(row, of_group.ends)))
    return {name: tuple(sorted(queues)) for name, queues in topics.items()}


def of_dead_letters(ends: Mapping[MessageQueue, QueueEnd]) -> tuple[QueueSample, ...]:
    """Returns the queues of a group's dead letters: how many there are, and no progress."""
    return tuple(
        sorted(QueueSample(queue.broker_name, queue.queue_id, None, end.max_offset) for queue, end in ends.items())
    )


def _queue(row: QueueRow, end: QueueEnd | None) -> QueueSample:
    if end is None:
        return QueueSample(row.broker_name, row.queue_id, row.committed_offset, None, None, None)
    lag = figures.lag(row.committed_offset, end.max_offset)
    behind = figures.behind(lag, row.committed_offset, row.told, end.max_history, end.last_stored_at)
    since_ms, doubt_ms = _waiting(lag, row.committed_offset, behind, end)
    return QueueSample(row.broker_name, row.queue_id, row.committed_offset, end.max_offset, since_ms, doubt_ms)


def _waiting(
    lag: int | None, committed_offset: int | None, behind: Behind, end: QueueEnd
) -> tuple[int | None, int | None]:
    """Returns since when the next message has been waiting, and by how much that may be earlier."""
    if lag == 0:
        return 0, 0
    if lag is None or committed_offset is None or behind.since is None:
        return None, None
    since_ms = _ms(behind.since)
    if behind.method == WaitingMethod.STORE_TIME:
        return since_ms, 0
    without_s = waiting.seen_without_s(end.max_history, committed_offset)
    return since_ms, None if without_s is None else max(0, min(since_ms - 1000 * without_s, 2**31 - 1))


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
