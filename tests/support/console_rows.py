"""Rows as the synchroniser would write them, for tests and screenshots of the console."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from mqadmin.clusters.models import (
    VERDICT_RANKS,
    Broker,
    Cluster,
    ClusterKind,
    ClusterState,
    Group,
    Member,
    QueueOffset,
    Subscription,
    Topic,
    TopicKind,
    TopicQueue,
    Verdict,
)
from mqadmin.deadletters.indexing import write
from mqadmin.deadletters.models import DeadLetterQueue
from mqadmin.lag.history import LagSample, appended
from mqadmin.lag.models import LagHistory
from mqadmin.observing.gateway import QueueReading
from mqadmin.rebalances.models import RebalanceEvent, RebalanceSource
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import Target
from mqadmin.retries.models import FailedAttempt
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.stored_message import StoredMessage


def make_cluster(name: str = "local", *, now: datetime, **changes: Any) -> Cluster:
    fields = {
        "namesrv": "127.0.0.1:9876",
        "rocketmq_name": name,
        "kind": ClusterKind.OURS,
        "state": ClusterState.REACHABLE,
        "state_since": now - timedelta(hours=5),
        "last_tried_at": now - timedelta(seconds=1),
        "last_synced_at": now - timedelta(seconds=1),
    }
    return Cluster.objects.update_or_create(name=name, defaults=fields | changes)[0]


def make_broker(cluster: Cluster, name: str = "broker-a", *, now: datetime, **changes: Any) -> Broker:
    fields = {
        "address": "127.0.0.1:10911",
        "version": 477,
        "scheduler_driver": "scheduler@shop-1",
        "scheduler_since": now - timedelta(hours=4, minutes=12),
        "scheduler_late_ms": 14,
        "scheduler_waiting_count": 38,
        "scheduler_kinds": [
            make_due_kind("delay", due_in_s=600, waiting_count=31, late_ms=14, now=now),
            make_due_kind("timer", due_in_s=3600, waiting_count=7, late_ms=4_200, now=now),
            make_due_kind("transaction", now=now),
        ],
        "seen_at": now - timedelta(seconds=1),
    }
    return Broker.objects.create(cluster=cluster, name=name, **(fields | changes))


def make_cluster_of(namesrv: str, broker_names: Iterable[str]) -> Cluster:
    """Makes the rows of the cluster `prod` behind that name server, observed just now."""
    now = timezone.now()
    cluster = make_cluster("prod", now=now, namesrv=namesrv)
    for name in broker_names:
        make_broker(cluster, name, now=now)
    return cluster


def make_due_kind(
    kind: str, *, now: datetime, due_in_s: float = 0, waiting_count: int = 0, late_ms: int = -1
) -> dict[str, Any]:
    """As the broker tells it: `due_in_s` 0 when nothing waits, `late_ms` -1 before the first."""
    next_due_ms = int((now + timedelta(seconds=due_in_s)).timestamp() * 1000) if due_in_s else 0
    return {"kind": kind, "next_due_ms": next_due_ms, "waiting_count": waiting_count, "late_ms": late_ms}


def make_topic(
    cluster: Cluster, name: str, *, now: datetime, queue_count: int = 4, per_queue: int = 132_000, **changes: Any
) -> Topic:
    fields = {
        "kind": TopicKind.NORMAL,
        "read_queue_count": queue_count,
        "write_queue_count": queue_count,
        "perm": 6,
        "message_count": queue_count * per_queue,
        "max_total": queue_count * per_queue,
        "last_stored_at": now - timedelta(seconds=2),
        "in_per_s": 20.0,
        "rate_base_at": now - timedelta(seconds=1),
        "offsets_seen_at": now - timedelta(seconds=1),
        "seen_at": now - timedelta(seconds=1),
    }
    topic = Topic.objects.create(cluster=cluster, name=name, **(fields | changes))
    TopicQueue.objects.bulk_create(
        TopicQueue(
            topic=topic,
            broker_name="broker-a",
            queue_id=queue_id,
            min_offset=0,
            max_offset=per_queue + 37 * queue_id,
            last_stored_at=now - timedelta(seconds=2 + queue_id),
            seen_at=now - timedelta(seconds=1),
        )
        for queue_id in range(queue_count)
    )
    return topic


def make_group(
    cluster: Cluster, name: str, *, now: datetime, lag_shape: str = "flat", verdict: str = Verdict.OK, **changes: Any
) -> Group:
    fields = {
        "message_model": "CLUSTERING",
        "consume_type": "CONSUME_PASSIVELY",
        "consume_from_where": "CONSUME_FROM_LAST_OFFSET",
        "is_consume_enabled": True,
        "retry_times_max": 16,
        "member_count": 2,
        "members_seen_at": now - timedelta(seconds=1),
        "lag": 0,
        "queue_count": 4,
        "moved_at": now - timedelta(seconds=2),
        "in_per_s": 20.0,
        "out_per_s": 20.0,
        "rate_base_at": now - timedelta(seconds=1),
        "offsets_seen_at": now - timedelta(seconds=1),
        "verdict_rank": VERDICT_RANKS[Verdict(verdict)],
        "verdict_since": now - timedelta(minutes=47),
        "verdict_rule": "keeps_up",
        "seen_at": now - timedelta(seconds=1),
    }
    group = Group.objects.create(cluster=cluster, name=name, verdict=verdict, **(fields | changes))
    make_lag_history(group, now=now, lag_shape=lag_shape)
    return group


def make_lag_history(group: Group, *, now: datetime, lag_shape: str) -> None:
    """An hour that ends at the group's lag: "flat" wobbles near 0, "growing" climbs, "draining" falls."""
    if group.lag is None:
        return
    packed = b""
    for minute in range(60):
        wobble = 6 * (1 + math.sin(minute * 1.7)) if minute % 4 else 0
        value = {
            "flat": wobble,
            "growing": group.lag * max(0, minute - 20) / 39,
            "draining": group.lag + group.lag * 9 * (59 - minute) / 59,
        }[lag_shape]
        at = now - timedelta(minutes=59 - minute)
        packed = appended(packed, LagSample(int(at.timestamp()), int(value) if minute < 59 else group.lag))
    LagHistory.objects.create(group=group, samples=packed, updated_at=now)


def make_member(group: Group, client_id: str, *, now: datetime, **changes: Any) -> Member:
    fields = {
        "address": f"{client_id.split('@', maxsplit=1)[0]}:41822",
        "language": "PYTHON",
        "version": 477,
        "online_since": now - timedelta(hours=2),
        "last_heartbeat_at": now - timedelta(seconds=12),
        "first_seen_at": now - timedelta(hours=2),
        "seen_at": now - timedelta(seconds=1),
    }
    return Member.objects.create(group=group, client_id=client_id, **(fields | changes))


def make_difference(
    topic: str, expression: str | None, *, since: datetime, others: Sequence[str] = (), is_over: bool = False
) -> dict[str, Any]:
    """An entry of a member's `differences`, as the broker tells it."""
    since_ms = int(since.timestamp() * 1000)
    return {
        "topic": topic,
        "expression": expression,
        "expression_type": "TAG",
        "sub_version": since_ms,
        "since_ms": since_ms,
        "last_seen_ms": since_ms + 1000,
        "is_over": is_over,
        "others": list(others),
    }


def make_queue_offset(
    group: Group, topic: str, queue_id: int, *, now: datetime, lag: int = 0, **changes: Any
) -> QueueOffset:
    """The queue ends `lag` messages beyond the committed offset; its topic is made when there is none yet."""
    fields = {
        "committed_offset": 132_000,
        "owner": None,
        "owner_since": now - timedelta(minutes=50),
        "last_pull_at": now - timedelta(seconds=1),
        "moved_at": now - timedelta(seconds=2),
        "seen_at": now - timedelta(seconds=1),
    }
    fields |= changes
    found, _ = Topic.objects.get_or_create(cluster=group.cluster, name=topic, defaults={"seen_at": now})
    TopicQueue.objects.update_or_create(
        topic=found,
        broker_name="broker-a",
        queue_id=queue_id,
        defaults={"min_offset": 0, "max_offset": fields["committed_offset"] + lag, "seen_at": now},
    )
    return QueueOffset.objects.create(
        group=group, topic_name=topic, broker_name="broker-a", queue_id=queue_id, **fields
    )


def make_subscription(
    group: Group, topic: str, expression: str = "*", *, now: datetime, **changes: Any
) -> Subscription:
    fields = {
        "sub_version": int(now.timestamp() * 1000),
        "first_seen_at": now - timedelta(hours=2),
        "seen_at": now - timedelta(seconds=1),
    }
    return Subscription.objects.create(group=group, topic_name=topic, expression=expression, **(fields | changes))


def make_event(
    group: Group,
    kind: str,
    *,
    at: datetime,
    client_id: str = "",
    source: RebalanceSource = RebalanceSource.WATCH,
    **details: Any,
) -> RebalanceEvent:
    return RebalanceEvent.objects.create(
        cluster=group.cluster,
        group=group,
        at=at,
        kind=kind,
        client_id=client_id,
        details=details,
        source=source,
        source_key=f"{kind}:{client_id}:{at.timestamp()}"[:255],
    )


def make_dead_letters(cluster: Cluster, group: str, messages: Sequence[StoredMessage], *, now: datetime) -> None:
    """Indexes messages of the group's dead-letter queue, as if they had just been read."""
    queue, _ = DeadLetterQueue.objects.get_or_create(
        cluster=cluster, topic_name=f"%DLQ%{group}", broker_name="broker-a", queue_id=0
    )
    end = messages[-1].queue_offset + 1
    write(cluster, queue, QueueReading(tuple(messages), end, end), now)


def make_replay(cluster: Cluster, *, now: datetime, **values: Any) -> ReplayJob:
    """A replay to the group billing alone, as it is right after its start."""
    fields = {"identity": "x", "group_name": "billing", "until_id": 0, "target": Target.GROUP, "rate_per_s": 100}
    return ReplayJob.objects.create(cluster=cluster, created_at=now, stop_percent=5, **{**fields, **values})


def make_failed_attempts(cluster: Cluster, group: str, *, now: datetime) -> None:
    """Six messages of the group: three wait, for minutes, three are due."""
    for number, (attempt, age_s, wait_s) in enumerate(
        ((12, 2, 600), (13, 4, 1200), (15, 40, 3600), (1, 40, 10), (2, 90, 30), (6, 400, 240))
    ):
        FailedAttempt.objects.create(
            cluster=cluster,
            group_name=group,
            broker_name="broker-a",
            topic_name=SCHEDULE_TOPIC,
            queue_id=1 + attempt,
            queue_offset=number,
            message_id=f"7F0000010A2C18B4AAC2{number:012X}",
            origin_topic="orders",
            tag="paid",
            keys=f"order-{number}",
            attempt_count=attempt,
            failed_at=now - timedelta(seconds=age_s),
            due_at=now - timedelta(seconds=age_s - wait_s),
            failure_class="shop.errors.PaymentTimeout" if number % 2 else "",
            failure_text="the gateway did not answer within 20 s" if number % 2 else "",
            failed_member="10.0.3.7@2211#1" if number % 2 else "",
        )
