"""How far groups are on their queues: a group's row and the topic's row of the same queue, put together.

Owns the joining of the two. Lag, max offset and since when the next message has been waiting are properties of
`QueueOffset`, once its `end` is attached. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from mqadmin.clusters.bulk import chunks
from mqadmin.clusters.models import QueueOffset, Topic, TopicQueue
from remoting.wire.bodies.message_queue import MessageQueue


def queue_of(row: QueueOffset) -> MessageQueue:
    return MessageQueue(row.topic_name, row.broker_name, row.queue_id)


def queue_ends(cluster_id: int, topic_names: Iterable[str]) -> dict[MessageQueue, TopicQueue]:
    """Returns the rows of all queues of these topics."""
    found: dict[MessageQueue, TopicQueue] = {}
    for names in chunks(sorted(set(topic_names))):
        # A topic has hundreds of queues, so it is not read with each of them.
        topics = Topic.objects.filter(cluster_id=cluster_id, name__in=names).in_bulk()
        for row in TopicQueue.objects.filter(topic__in=topics):
            row.topic = topics[row.topic_id]
            found[MessageQueue(row.topic.name, row.broker_name, row.queue_id)] = row
    return found


def attach_ends(cluster_id: int, rows: Iterable[QueueOffset]) -> list[QueueOffset]:
    """Returns the rows, all of groups of this cluster, each with the `end` of its queue where that is known."""
    found = list(rows)
    ends = queue_ends(cluster_id, (row.topic_name for row in found))
    for row in found:
        row.end = ends.get(queue_of(row))
    return found
