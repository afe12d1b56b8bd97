"""Notes how far dead-letter queues reach, as it is observed, and has the index go on where one grew."""

from __future__ import annotations

from django.db import transaction
from django.dispatch import receiver

from mqadmin.clusters.bulk import chunks, upsert
from mqadmin.clusters.models import TopicKind, TopicQueue
from mqadmin.deadletters import tasks
from mqadmin.deadletters.models import DeadLetterQueue
from mqadmin.observing.signals import TopicsChanged, topics_changed

_IDENTITY = ("cluster", "topic_name", "broker_name", "queue_id")


@receiver(topics_changed)
def note_ends(event: TopicsChanged, **_: object) -> int:
    """Returns how many rows were written."""
    count = 0
    for topic_ids in chunks(event.topic_ids):
        found = TopicQueue.objects.filter(topic__in=topic_ids, topic__kind=TopicKind.DEAD_LETTER)
        count += _note(event.cluster.pk, list(found.select_related("topic")))
    if count:
        transaction.on_commit(tasks.wake)
    return count


def _note(cluster_id: int, observed: list[TopicQueue]) -> int:
    if not observed:
        return 0
    known = {
        (row.topic_name, row.broker_name, row.queue_id): row
        for row in DeadLetterQueue.objects.filter(
            cluster_id=cluster_id, topic_name__in={queue.topic.name for queue in observed}
        )
    }
    changed = []
    for queue in observed:
        name = queue.topic.name
        row = known.get((name, queue.broker_name, queue.queue_id)) or DeadLetterQueue(
            cluster_id=cluster_id, topic_name=name, broker_name=queue.broker_name, queue_id=queue.queue_id
        )
        if row.pk is not None and row.end_offset == queue.max_offset:
            continue
        if queue.max_offset < row.next_offset:
            row.next_offset = queue.min_offset  # the topic was deleted and made anew
        row.end_offset = queue.max_offset
        changed.append(row)
    upsert(DeadLetterQueue, changed, unique=_IDENTITY)
    return len(changed)
