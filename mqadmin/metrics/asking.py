"""What is asked for `/metrics` beyond a broker's own figures: busy topics, groups in trouble, their members.

Every one costs a request a minute, so there are so many and no more; who is not asked has no such series.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import F

from mqadmin.clusters.models import Broker, Cluster, ClusterKind, Member, QueueOffset, Topic, TopicKind, TopicQueue
from mqadmin.clusters.relays import relay_of
from mqadmin.observing.gateway import StatsKey

# Of each broker: 100 requests for topics, 150 for groups, a minute, which is 4 a second.
TOPICS_MAX = 50
PAIRS_MAX = 50
# Of each cluster: a broker relays each request to the member.
MEMBERS_MAX = 20
TOPIC_STATISTICS = ("TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE")
GROUP_STATISTICS = ("GROUP_GET_NUMS", "GROUP_GET_SIZE", "SNDBCK_PUT_NUMS")
# Our brokers count messages, neither bytes nor what was sent back.
OUR_STATISTICS = frozenset(("TOPIC_PUT_NUMS", "GROUP_GET_NUMS"))


def statistics(cluster: Cluster, broker: Broker) -> list[StatsKey]:
    """Returns what to ask the broker for: the busiest topics that it has queues of, and groups, in trouble first."""
    is_ours = cluster.kind == ClusterKind.OURS
    here = TopicQueue.objects.filter(broker_name=broker.name, topic__cluster=cluster).values("topic")
    topics = Topic.objects.filter(pk__in=here, kind=TopicKind.NORMAL).order_by(
        F("in_per_s").desc(nulls_last=True), "name"
    )
    first = list(cluster.groups.filter(is_system=False).order_by("verdict_rank", "name")[:PAIRS_MAX])
    pairs = (
        QueueOffset.objects.filter(group__in=first, broker_name=broker.name)
        .exclude(is_subscribed=False)
        .order_by("group__verdict_rank", "group__name", "topic_name")
        .values_list("topic_name", "group__name", "group__verdict_rank")
        .distinct()
    )
    return [
        StatsKey(name, key)
        for names, keys in (
            (TOPIC_STATISTICS, topics.values_list("name", flat=True)[:TOPICS_MAX]),
            (GROUP_STATISTICS, (f"{topic}@{group}" for topic, group, _ in pairs[:PAIRS_MAX])),
        )
        for key in keys
        for name in names
        if not is_ours or name in OUR_STATISTICS
    ]


def members(cluster: Cluster, masters: Mapping[str, str]) -> list[tuple[str, Member]]:
    """Returns (address, member): the broker that is to relay the question. `masters`: name → address."""
    online = (
        Member.objects.filter(group__cluster=cluster, group__is_system=False, left_at=None)
        .select_related("group")
        .order_by("group__verdict_rank", "group__name", "client_id")[:MEMBERS_MAX]
    )
    return [(address, member) for member in online if (address := relay_of(member, masters)) is not None]
