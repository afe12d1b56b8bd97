"""Writes how far groups have consumed, queue by queue (`QueueOffset`), as `offset_plan.py` decides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from django.db.models import Exists, OuterRef

from mqadmin.clusters.bulk import Change, chunks, upsert, write
from mqadmin.clusters.models import Cluster, Group, QueueOffset, Subscription, TopicQueue
from mqadmin.observing.observation import CommitObserved, Observation
from mqadmin.observing.offset_plan import GroupProgress, OffsetRow, queue_offsets
from remoting.wire.bodies.message_queue import MessageQueue


class OffsetRows:
    """The rows of one cluster, and the observation to write into them. `ids`: those of the groups that it names."""

    def __init__(self, cluster: Cluster, observation: Observation, ids: Mapping[str, int]) -> None:
        self._cluster = cluster
        self._observation = observation
        self._ids = ids
        self._progress = _progress(observation, ids)
        self.written_count = 0

    def groups_to_write(self, widened_topics: Iterable[str]) -> list[int]:
        """Returns the ids of groups that progressed, and of those that read a topic with more queues than before."""
        return sorted({*self._progress, *self._readers(widened_topics)})

    def write(self, group_ids: Sequence[int]) -> set[int]:
        """Writes the rows of these groups; returns the ids of those of which something changed."""
        rows: defaultdict[int, list[OffsetRow]] = defaultdict(list)
        stored = QueueOffset.objects.filter(group__in=group_ids).values_list("group_id", *OffsetRow._fields)
        for group_id, *values in stored:
            rows[group_id].append(OffsetRow(*values))
        subscribed = _subscribed_topics(group_ids)
        queues = self._queues_of({name for names in subscribed.values() for name in names})
        created: list[QueueOffset] = []
        changed: list[Change] = []
        moved: set[int] = set()
        for group_id in group_ids:
            progress = self._progress.get(group_id) or GroupProgress(group_id)
            if group_id in subscribed:
                progress = replace(progress, subscribed_topics=subscribed[group_id])
            for row, new in queue_offsets(progress, rows[group_id], queues, self._observation.at):
                moved.add(group_id)
                if row.pk is None:
                    created.append(_new_row(group_id, row, new))
                else:
                    changed.append(Change(row.pk, new))
        upsert(QueueOffset, created, unique=("group", "topic_name", "broker_name", "queue_id"))
        write(QueueOffset, changed)
        self.written_count += len(created) + len(changed)
        return moved

    def note_digests(self, group_ids: Sequence[int]) -> None:
        """Writes, in the transaction that wrote the rows, of which answer they are the word."""
        of_chunk = set(group_ids)
        digests = ((self._ids[name], digest) for name, digest in self._observation.digests.items())
        write(Group, [Change(pk, {"committed_digest": digest}) for pk, digest in digests if pk in of_chunk])

    def _readers(self, topic_names: Iterable[str]) -> set[int]:
        return {
            group_id
            for names in chunks(topic_names)
            for group_id in Subscription.objects.filter(
                group__cluster=self._cluster, topic_name__in=names, client_id="", ended_at=None
            ).values_list("group_id", flat=True)
        }

    def _queues_of(self, topic_names: Iterable[str]) -> list[MessageQueue]:
        return [
            MessageQueue(*identity)
            for names in chunks(topic_names)
            for identity in TopicQueue.objects.filter(topic__cluster=self._cluster, topic__name__in=names).values_list(
                "topic__name", "broker_name", "queue_id"
            )
        ]


def renew_ages(cluster: Cluster, observation: Observation) -> None:
    """Renews `seen_at` of rows that were sampled and are unchanged: lag is as fresh as the ends of its queues."""
    topics: defaultdict[str, set[str]] = defaultdict(set)
    for queue in observation.queues:
        topics[queue.queue.broker_name].add(queue.queue.topic)
    # Correlated, so that both databases go by the index of topics: a list of groups would have them read all rows.
    is_of_cluster = Exists(Group.objects.filter(pk=OuterRef("group"), cluster=cluster))
    for broker, sampled in topics.items():
        for names in chunks(sampled):
            rows = QueueOffset.objects.filter(is_of_cluster, topic_name__in=names, broker_name=broker)
            rows.exclude(seen_at=observation.at).update(seen_at=observation.at)


def _progress(observation: Observation, ids: Mapping[str, int]) -> dict[int, GroupProgress]:
    committed: defaultdict[str, dict[MessageQueue, CommitObserved]] = defaultdict(dict)
    for commit in observation.committed:
        committed[commit.group][commit.queue] = commit
    owners = {group.name: group.owners for group in observation.groups if group.members is not None}
    return {
        ids[name]: GroupProgress(
            group_id=ids[name], broker=observation.of_broker, committed=committed[name], owners=owners.get(name)
        )
        for name in {*committed, *owners}
    }


def _subscribed_topics(group_ids: Sequence[int]) -> dict[int, frozenset[str]]:
    """Returns those of groups with members online: without any, the last known subscription stays."""
    topics: defaultdict[int, set[str]] = defaultdict(set)
    in_force = Subscription.objects.filter(group__in=group_ids, group__member_count__gt=0, client_id="", ended_at=None)
    for group_id, topic in in_force.values_list("group_id", "topic_name"):
        topics[group_id].add(topic)
    return {group_id: frozenset(names) for group_id, names in topics.items()}


def _new_row(group_id: int, row: OffsetRow, values: Mapping[str, object]) -> QueueOffset:
    return QueueOffset(
        group_id=group_id,
        topic_name=row.topic_name,
        broker_name=row.broker_name,
        queue_id=row.queue_id,
        **values,
    )
