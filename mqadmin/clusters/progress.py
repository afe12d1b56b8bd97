"""How far groups are on their queues: a group's row and the topic's row of the same queue, put together.

Owns the joining of the two. Lag, max offset and since when the next message has been waiting are properties of
`QueueOffset`, once its `end` is attached. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from mqadmin.clusters.models import QueueOffset, TopicQueue
from remoting.wire.bodies.message_queue import MessageQueue

# Topic names in one statement: SQLite takes 32,766 parameters, and its planner is happy far below.
NAMES_PER_QUERY = 500


def queue_of(row: QueueOffset) -> MessageQueue:
    return MessageQueue(row.topic_name, row.broker_name, row.queue_id)


def queue_ends(cluster_id: int, topic_names: Iterable[str]) -> dict[MessageQueue, TopicQueue]:
    """Returns the rows of all queues of these topics."""
    names = sorted(set(topic_names))
    return {
        MessageQueue(row.topic.name, row.broker_name, row.queue_id): row
        for first in range(0, len(names), NAMES_PER_QUERY)
        for row in TopicQueue.objects.filter(
            topic__cluster_id=cluster_id, topic__name__in=names[first : first + NAMES_PER_QUERY]
        ).select_related("topic")
    }


def attach_ends(cluster_id: int, rows: Iterable[QueueOffset]) -> list[QueueOffset]:
    """Returns the rows, all of groups of this cluster, each with the `end` of its queue where that is known."""
    found = list(rows)
    ends = queue_ends(cluster_id, (row.topic_name for row in found))
    for row in found:
        row.end = ends.get(queue_of(row))
    return found
