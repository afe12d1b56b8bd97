"""Whose word the rows of a cluster are that has several watched brokers now: rows from before do not say.

Written when following begins, once: each such row counts as the word of all brokers until each has said otherwise, so
the first broker's snapshot takes back nothing that may be another's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from django.db.models import Count

from mqadmin.clusters.bulk import update
from mqadmin.clusters.models import Cluster, Group, Member, Subscription, Topic, TopicQueue


def attribute(cluster: Cluster, brokers: Collection[str]) -> None:
    """Names `brokers` in the rows that name none; a topic's are those that have queues of it."""
    names = sorted(brokers)
    Member.objects.filter(group__cluster=cluster, left_at=None, known_by=[]).update(known_by=names)
    Subscription.objects.filter(group__cluster=cluster, ended_at=None, known_by=[]).update(known_by=names)
    groups = list(Group.objects.filter(cluster=cluster, of_brokers={}))
    for group in groups:
        group.of_brokers = {name: [group.is_consume_enabled is not False, group.retry_times_max or 0] for name in names}
    update(Group, groups, ["of_brokers"])
    topics = list(Topic.objects.filter(cluster=cluster, of_brokers={}))
    counts: defaultdict[int, dict[str, int]] = defaultdict(dict)
    queues = TopicQueue.objects.filter(topic__cluster=cluster, topic__of_brokers={})
    for topic_id, broker, count in queues.values_list("topic_id", "broker_name").annotate(n=Count("pk")):
        counts[topic_id][broker] = count
    for topic in topics:
        of_brokers = counts[topic.pk] or dict.fromkeys(names, 0)
        topic.of_brokers = {broker: [count, count, topic.perm or 0] for broker, count in of_brokers.items()}
    update(Topic, topics, ["of_brokers"])


def brokers_of(cluster: Cluster) -> set[str]:
    """Returns the names of the brokers whose word the rows of topics and groups are."""
    return {
        name
        for rows in (cluster.topics, cluster.groups)
        for of_brokers in rows.values_list("of_brokers", flat=True)
        for name in of_brokers
    }
