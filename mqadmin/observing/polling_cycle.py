"""One cycle of polling, every 15 s: polls the cluster, writes what was found. Which worker does: `polling_claim.py`."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import datetime

from mqadmin.clusters.looking import looked_at_groups
from mqadmin.clusters.models import (
    NEEDS_ATTENTION,
    Cluster,
    ClusterKind,
    ClusterState,
    QueueOffset,
    WaitingMethod,
)
from mqadmin.observing import costs, synchroniser
from mqadmin.observing.exact_waiting import NextMessage, Unreadable
from mqadmin.observing.gateway import Costs, GatewayError, ask
from mqadmin.observing.polling import poll
from mqadmin.observing.reachability import note_reachable, note_resumed, note_unreachable
from mqadmin.observing.signals import Ticked, publish, ticked
from mqadmin.observing.turns import Cursors, Urgent
from remoting.wire.bodies.message_queue import MessageQueue

POLL_INTERVAL_S = 15
# More than a cycle asks out of turn.
URGENT_MAX = 200


def urgent(cluster: Cluster, now: datetime) -> Urgent:
    """Returns the groups that somebody looks at, then those in trouble, with the topics that they read."""
    looked_at = looked_at_groups(cluster, now)[:URGENT_MAX]
    in_trouble = cluster.groups.filter(is_system=False, verdict__in=NEEDS_ATTENTION).order_by("verdict_rank", "name")
    names = dict.fromkeys((*looked_at, *in_trouble.values_list("name", flat=True)[:URGENT_MAX]))
    topics = QueueOffset.objects.filter(group__cluster=cluster, group__name__in=names).exclude(is_subscribed=False)
    of_group: dict[str, list[str]] = {}
    for group, topic in topics.values_list("group__name", "topic_name").distinct().order_by("topic_name"):
        of_group.setdefault(group, []).append(topic)
    read = tuple(dict.fromkeys(topic for name in names for topic in of_group.get(name, ())))
    return Urgent(tuple(names), read, len(looked_at))


def known_store_times(cluster: Cluster, groups: Collection[str]) -> set[NextMessage]:
    """Returns the next messages of these groups of which the rows have the store time."""
    rows = QueueOffset.objects.filter(group__cluster=cluster, group__name__in=groups)
    exact = rows.filter(behind_method=WaitingMethod.STORE_TIME, committed_offset__isnull=False)
    return {
        NextMessage(group, MessageQueue(topic, broker, queue_id), committed_offset or 0)
        for group, topic, broker, queue_id, committed_offset in exact.values_list(
            "group__name", "topic_name", "broker_name", "queue_id", "committed_offset"
        )
    }


def poll_once(cluster: Cluster, now: datetime, keep_claim: Callable[[], None] = lambda: None) -> None:
    """Writes what one cycle found, or why it found nothing. `keep_claim` raises where no more is to be written."""
    cursors = Cursors(cluster.topic_cursor, cluster.group_cursor)
    expected = set(cluster.brokers.values_list("name", flat=True))
    first = urgent(cluster, now)
    known = known_store_times(cluster, first.groups)
    digests = dict(cluster.groups.values_list("name", "committed_digest"))
    unreadable = [Unreadable(MessageQueue(*queue), queue_offset) for *queue, queue_offset in cluster.unreadable_next]
    spent, began_s = Costs(), time.monotonic()
    try:
        found = ask(
            cluster.namesrv,
            lambda gateway: poll(
                gateway,
                cursors,
                now,
                expected=expected,
                urgent=first,
                digests=digests,
                already_read=known,
                unreadable=unreadable,
            ),
            spent,
        )
    except GatewayError as error:
        keep_claim()
        costs.write(cluster, spent.take(), now)
        note_unreachable(cluster, str(error), now)
        return
    keep_claim()
    costs.write(cluster, spent.take(), now)
    note_resumed(cluster, now)
    was_unreachable = cluster.state == ClusterState.UNREACHABLE
    cluster.rocketmq_name = found.rocketmq_name or cluster.rocketmq_name
    cluster.topic_cursor, cluster.group_cursor = found.cursors.topic, found.cursors.group
    cluster.cycle_request_count, cluster.cycle_seconds = found.request_count, time.monotonic() - began_s
    cluster.unreadable_next = [[*one.queue, one.queue_offset] for one in found.unreadable]
    cluster.save(
        update_fields=[
            "rocketmq_name",
            "topic_cursor",
            "group_cursor",
            "cycle_request_count",
            "cycle_seconds",
            "unreadable_next",
        ]
    )
    is_all_listed = expected <= {broker.name for broker in found.brokers} or found.error is None
    synchroniser.apply_brokers(cluster, found.brokers, now, deletes=is_all_listed)
    synchroniser.apply(cluster, found.observation, is_watched=False, between_parts=keep_claim)
    keep_claim()
    publish(ticked, Ticked(cluster, now, is_watched=False))
    keep_claim()
    # What was away may come back as something else: then whether it can be followed is asked again.
    kind = ClusterKind.UNKNOWN if was_unreachable else ClusterKind(cluster.kind)
    note_reachable(cluster, kind, now, partly=str(found.error) if found.error else "")
