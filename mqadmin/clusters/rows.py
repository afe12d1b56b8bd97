"""Model rows to the shapes that pages see. Pure but for the words of a verdict, which follow the reader's language."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from mqadmin.clusters.models import (
    Broker,
    Cluster,
    ClusterKind,
    Group,
    Member,
    QueueOffset,
    Subscription,
    Topic,
    TopicQueue,
)
from mqadmin.clusters.shapes import (
    AttentionItem,
    Behind,
    BrokerRow,
    ClusterHead,
    Drain,
    DrainKind,
    Figure,
    GroupRow,
    GroupSettings,
    LagPoint,
    MemberRow,
    QueueRow,
    SchedulerFacts,
    SubscriptionRow,
    TopicQueueRow,
    TopicReader,
    TopicRow,
    VerdictFacts,
)
from mqadmin.clusters.versions import version_name
from mqadmin.lag import history, verdicts
from remoting.wire.names import is_retry_topic


def head(cluster: Cluster) -> ClusterHead:
    return ClusterHead(
        id=cluster.pk,
        name=cluster.name,
        rocketmq_name=cluster.rocketmq_name,
        kind=cluster.kind,
        state=cluster.state,
        state_since=cluster.state_since,
        last_error=cluster.last_error,
        last_synced_at=cluster.last_synced_at,
        namesrv=cluster.namesrv,
    )


def fresh(cluster: Cluster, seen_at: datetime | None) -> datetime | None:
    """Up to when a fact is true. A watch tells every change, so an unchanged row is as fresh as the watch."""
    if seen_at is None or cluster.kind != ClusterKind.OURS or cluster.last_synced_at is None:
        return seen_at
    return max(seen_at, cluster.last_synced_at)


def known(seen_at: datetime | None, last: datetime) -> datetime:
    return seen_at or last


def lag_points(packed: bytes | memoryview, now: datetime) -> tuple[LagPoint, ...]:
    return tuple(
        LagPoint(datetime.fromtimestamp(sample.at_s, UTC), sample.lag)
        for sample in history.window(packed, int(now.timestamp()))
    )


def verdict_facts(group: Group) -> VerdictFacts:
    return VerdictFacts(
        verdict=group.verdict,
        since=group.verdict_since,
        rule=group.verdict_rule,
        reason=verdicts.reason(group.verdict_rule, group.verdict_facts),
    )


def drain(lag: int | None, in_per_s: float | None, out_per_s: float | None) -> Drain:
    """When the lag is gone if both rates stay as they are."""
    if lag == 0:
        return Drain(DrainKind.NOW)
    if lag is None or in_per_s is None or out_per_s is None:
        return Drain(DrainKind.UNKNOWN)
    if out_per_s <= in_per_s:
        return Drain(DrainKind.NEVER)
    return Drain(DrainKind.IN, lag / (out_per_s - in_per_s))


def attention_item(group: Group) -> AttentionItem:
    return AttentionItem(
        cluster_name=group.cluster.name,
        group_name=group.name,
        verdict=verdict_facts(group),
        lag=Figure(group.lag, fresh(group.cluster, group.offsets_seen_at)),
        behind=Behind(group.behind_since, group.behind_method),
    )


def group_row(cluster: Cluster, group: Group, packed_history: bytes | memoryview, now: datetime) -> GroupRow:
    offsets_at = fresh(cluster, group.offsets_seen_at)
    rates_at = fresh(cluster, group.rate_base_at)
    return GroupRow(
        name=group.name,
        is_system=group.is_system,
        verdict=verdict_facts(group),
        lag=Figure(group.lag, offsets_at),
        unknown_queue_count=group.unknown_queue_count,
        behind=Behind(group.behind_since, group.behind_method),
        in_per_s=Figure(group.in_per_s, rates_at),
        out_per_s=Figure(group.out_per_s, rates_at),
        drain=drain(group.lag, group.in_per_s, group.out_per_s),
        member_count=Figure(group.member_count, fresh(cluster, group.members_seen_at)),
        history=lag_points(packed_history, now),
        revision=group.revision,
        seen_at=known(fresh(cluster, group.seen_at), group.seen_at),
    )


def group_settings(group: Group) -> GroupSettings:
    return GroupSettings(
        message_model=group.message_model,
        consume_type=group.consume_type,
        consume_from_where=group.consume_from_where,
        is_consume_enabled=group.is_consume_enabled,
        retry_times_max=group.retry_times_max,
    )


def queue_row(cluster: Cluster, queue: QueueOffset) -> QueueRow:
    return QueueRow(
        topic_name=queue.topic_name,
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        committed_offset=queue.committed_offset,
        max_offset=queue.max_offset,
        lag=queue.lag,
        behind=Behind(queue.behind_since, queue.behind_method),
        owner=queue.owner,
        owner_since=queue.owner_since,
        last_pull_at=queue.last_pull_at,
        moved_at=queue.moved_at,
        is_retry=is_retry_topic(queue.topic_name),
        is_subscribed=queue.is_subscribed,
        seen_at=known(fresh(cluster, queue.seen_at), queue.seen_at),
    )


def topic_reader(group: GroupRow, queues: Iterable[QueueRow]) -> TopicReader:
    """`queues` are the group's on one topic; those that its members do not subscribe to any more don't count."""
    known = [queue for queue in queues if queue.lag is not None and queue.is_subscribed is not False]
    longest = min(
        (queue.behind for queue in known if queue.behind.since),
        key=lambda behind: behind.since or group.seen_at,
        default=Behind(None, ""),
    )
    return TopicReader(
        group=group,
        lag=Figure(
            sum(queue.lag or 0 for queue in known) if known else None,
            min((queue.seen_at for queue in known), default=None),
        ),
        behind=longest,
    )


def member_rows(cluster: Cluster, members: Iterable[Member], queues: Iterable[QueueRow]) -> tuple[MemberRow, ...]:
    owned: defaultdict[str, list[QueueRow]] = defaultdict(list)
    for queue in queues:
        if queue.owner:
            owned[queue.owner].append(queue)
    return tuple(_member_row(cluster, member, tuple(owned[member.client_id])) for member in members)


def _member_row(cluster: Cluster, member: Member, queues: tuple[QueueRow, ...]) -> MemberRow:
    return MemberRow(
        client_id=member.client_id,
        address=member.address,
        language=member.language,
        version=member.version,
        version_name=version_name(member.version),
        online_since=member.online_since,
        first_seen_at=member.first_seen_at,
        last_heartbeat_at=member.last_heartbeat_at,
        left_at=member.left_at,
        queues=queues if member.left_at is None else (),
        seen_at=member.seen_at if member.left_at else known(fresh(cluster, member.seen_at), member.seen_at),
    )


def subscription_row(cluster: Cluster, subscription: Subscription) -> SubscriptionRow:
    return SubscriptionRow(
        client_id=subscription.client_id,
        topic_name=subscription.topic_name,
        expression=subscription.expression,
        expression_type=subscription.expression_type,
        sub_version=subscription.sub_version,
        first_seen_at=subscription.first_seen_at,
        seen_at=known(fresh(cluster, subscription.seen_at), subscription.seen_at),
    )


def topic_row(cluster: Cluster, topic: Topic, group_count: int) -> TopicRow:
    offsets_at = fresh(cluster, topic.offsets_seen_at)
    return TopicRow(
        name=topic.name,
        kind=topic.kind,
        read_queue_count=topic.read_queue_count,
        write_queue_count=topic.write_queue_count,
        perm=topic.perm,
        message_count=Figure(topic.message_count, offsets_at),
        in_per_s=Figure(topic.in_per_s, fresh(cluster, topic.rate_base_at)),
        last_stored_at=topic.last_stored_at,
        group_count=group_count,
        seen_at=known(fresh(cluster, topic.seen_at), topic.seen_at),
    )


def topic_queue_row(cluster: Cluster, queue: TopicQueue) -> TopicQueueRow:
    return TopicQueueRow(
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        min_offset=queue.min_offset,
        max_offset=queue.max_offset,
        last_stored_at=queue.last_stored_at,
        seen_at=known(fresh(cluster, queue.seen_at), queue.seen_at),
    )


def broker_row(broker: Broker) -> BrokerRow:
    scheduler = None
    if broker.scheduler_driver is not None:
        scheduler = SchedulerFacts(
            driver=broker.scheduler_driver,
            since=broker.scheduler_since,
            late_ms=broker.scheduler_late_ms,
            waiting_count=broker.scheduler_waiting_count,
        )
    return BrokerRow(
        name=broker.name,
        broker_id=broker.broker_id,
        address=broker.address,
        version=broker.version,
        last_error=broker.last_error,
        scheduler=scheduler,
        seen_at=broker.seen_at,
    )
