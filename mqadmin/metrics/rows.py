"""What the series are made of, read from the database: one query each, however many groups and topics there are.

A sum of which a part is not known is null. RocketMQ's own groups and topics are left out. How long a message has
waited is counted as on pages (`clusters/figures.py`, `Behind`): where a cluster is sampled, up to the newest sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection
from django.db.models import Sum

from mqadmin.clusters.models import (
    BROADCASTING,
    POLLED_KINDS,
    Cluster,
    ClusterState,
    Group,
    QueueOffset,
    Topic,
    TopicKind,
    TopicQueue,
    WaitingMethod,
)


@dataclass(frozen=True, slots=True)
class Progress:
    """A group on the queues of one topic on one broker. Null: not known."""

    cluster: str
    group: str
    message_model: str
    member_count: int | None
    topic: str
    broker: str
    committed: int | None
    lag: int | None
    # Store time of the oldest message that waits; `is_behind_known` False: of some queue it is not known.
    behind_since: datetime | None
    is_behind_known: bool
    # The sample up to which that was seen; null where it is so until now.
    behind_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The sum of the max offsets of a topic's queues on one broker."""

    cluster: str
    topic: str
    kind: str
    broker: str
    max_offset: int


# As `QueueOffset.lag`: nobody is behind on a queue that never held a message, and never is a lag below 0.
_PROGRESS = """
    SELECT c.name, g.name, g.message_model, g.member_count, o.topic_name, o.broker_name,
        CASE WHEN COUNT(*) = COUNT(o.committed_offset) THEN SUM(o.committed_offset) END,
        CASE WHEN COUNT(*) = SUM(CASE
            WHEN q.max_offset = 0 THEN 1
            WHEN q.max_offset IS NULL OR o.committed_offset IS NULL THEN 0
            ELSE 1 END)
        THEN SUM(CASE
            WHEN q.max_offset = 0 OR o.committed_offset >= q.max_offset THEN 0
            ELSE q.max_offset - o.committed_offset END)
        END,
        MIN({behind}),
        SUM(CASE WHEN {waits} AND {behind} IS NULL THEN 1 ELSE 0 END),
        {until}
    FROM {offsets} o
    JOIN {groups} g ON g.id = o.group_id
    JOIN {clusters} c ON c.id = g.cluster_id
    LEFT JOIN {topics} t ON t.cluster_id = g.cluster_id AND t.name = o.topic_name
    LEFT JOIN {queues} q ON q.topic_id = t.id AND q.broker_name = o.broker_name AND q.queue_id = o.queue_id
    WHERE NOT g.is_system AND (o.is_subscribed IS NULL OR o.is_subscribed)
    GROUP BY c.name, g.verdict_rank, g.id, g.name, g.message_model, g.member_count, o.topic_name, o.broker_name,
        c.kind, c.state, g.offsets_seen_at
    ORDER BY g.verdict_rank, g.id
    LIMIT %s
"""


_WAITS = "q.max_offset > 0 AND o.committed_offset < q.max_offset"
# As `QueueOffset.behind`, where a broker told the store time: the console's own estimates are no latency.
_BEHIND = f"""
    CASE WHEN {_WAITS} THEN
        CASE WHEN o.behind_method = '{WaitingMethod.STORE_TIME}' AND o.behind_since IS NOT NULL THEN o.behind_since
            WHEN q.max_offset - o.committed_offset = 1 THEN q.last_stored_at END
    END"""


# As `Group.sampled_until`.
_UNTIL = f"""
    CASE WHEN g.message_model = '{BROADCASTING}'
            OR c.state = '{ClusterState.REACHABLE}' AND c.kind IN ({", ".join(f"'{kind}'" for kind in POLLED_KINDS)})
        THEN g.offsets_seen_at END"""


def progress(limit: int) -> list[Progress]:
    """Returns at most `limit` rows, of the groups in trouble first."""
    models = {
        "offsets": QueueOffset,
        "groups": Group,
        "clusters": Cluster,
        "topics": Topic,
        "queues": TopicQueue,
    }
    quote = connection.ops.quote_name
    names = {word: quote(model._meta.db_table) for word, model in models.items()}
    with connection.cursor() as cursor:
        cursor.execute(_PROGRESS.format(**names, waits=_WAITS, behind=_BEHIND, until=_UNTIL), [limit])
        found = cursor.fetchall()
        return [
            Progress(
                cluster=cluster,
                group=group,
                message_model=model,
                member_count=members,
                topic=topic,
                broker=broker,
                committed=_whole(committed),
                lag=_whole(lag),
                behind_since=_moment(behind_since),
                is_behind_known=not unknown,
                behind_until=_moment(until),
            )
            for cluster, group, model, members, topic, broker, committed, lag, behind_since, unknown, until in found
        ]


def ends(limit: int) -> list[End]:
    """Returns at most `limit` rows."""
    found = (
        TopicQueue.objects.exclude(topic__kind=TopicKind.SYSTEM)
        .values_list("topic__cluster__name", "topic__name", "topic__kind", "broker_name")
        .annotate(total=Sum("max_offset"))
        .order_by("topic__cluster__name", "topic__name", "broker_name")[:limit]
    )
    return [End(cluster, topic, kind, broker, total) for cluster, topic, kind, broker, total in found]


# All that `Group.behind` reads is among them: a column that is not costs a query for each group.
_GROUP_COLUMNS = (
    "name",
    "member_count",
    "message_model",
    "behind_since",
    "behind_method",
    "offsets_seen_at",
    "lag",
    "in_per_s",
    "out_per_s",
    "cluster__name",
    "cluster__kind",
    "cluster__state",
)


def groups(limit: int) -> Sequence[Group]:
    """Returns at most `limit` groups, those in trouble first."""
    return list(
        Group.objects.filter(is_system=False)
        .select_related("cluster")
        .only(*_GROUP_COLUMNS)
        .order_by("verdict_rank", "pk")[:limit]
    )


def _moment(value: datetime | str | None) -> datetime | None:
    """Returns a moment as an aware datetime: SQLite has text, without a zone and in UTC."""
    if not isinstance(value, str):
        return value
    found = datetime.fromisoformat(value)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _whole(value: object) -> int | None:
    """Returns a sum as an integer: PostgreSQL sums whole numbers to Decimals."""
    return None if value is None else int(value)  # type: ignore[call-overload]
