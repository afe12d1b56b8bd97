"""Says of rebalances that are over how long consumption stood meanwhile, while the samples around them are there.

Queues that moved are judged once: as soon as samples show that the queue which stood longest has moved again, or when
AFTER is over. What is known then is kept in the event's details, and so outlives the hot window. Where more are due
than one task judges, those whose time is over come first, as these are done with, whatever their samples say; then the
latest. So events whose queues stand still keep no other one from its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from mqadmin.clusters.models import Cluster
from mqadmin.lag import hot_window
from mqadmin.rebalances.models import RebalanceEvent, RebalanceKind
from mqadmin.rebalances.pauses import Pause, pause
from mqadmin.rebalances.signals import EventsRecorded, pauses_judged
from remoting.wire.bodies.message_queue import MessageQueue

# Read around an event: a queue that stands for longer has a verdict of its own.
BEFORE = AFTER = timedelta(minutes=15)
# Two late cycles: by then a queue that goes on has been seen to move.
SEEN_AFTER = timedelta(seconds=90)
# When no worker ran for longer, what happened before stays unjudged: samples are whole for six hours.
LOOKS_BACK = timedelta(hours=2)
# Events of a cluster judged by one task, each with four queries; the next ones come a minute later.
JUDGED_MAX = 200


def judge(cluster: Cluster, now: datetime) -> int:
    """Writes the pauses of queues that moved; returns of how many events."""
    judged = []
    for event in _due(cluster, now):
        found = _pause(event, now)
        if (found is not None and found.is_over) or now - event.at >= AFTER:
            event.details = {**event.details, "pause": None if found is None else _details(found)}
            judged.append(event)
    if judged:
        with transaction.atomic():
            RebalanceEvent.objects.bulk_update(judged, ["details"])
            pauses_judged.send(sender=RebalanceEvent, event=EventsRecorded(cluster, judged))
    return len(judged)


def _due(cluster: Cluster, now: datetime) -> list[RebalanceEvent]:
    """Returns which to judge now, JUDGED_MAX at most."""
    unjudged = RebalanceEvent.objects.filter(
        cluster=cluster, kind=RebalanceKind.QUEUES_MOVED, at__gte=now - LOOKS_BACK, at__lte=now - SEEN_AFTER
    ).exclude(details__has_key="pause")
    rows = unjudged.select_related("group__cluster")
    over = list(rows.filter(at__lte=now - AFTER).order_by("at", "pk")[:JUDGED_MAX])
    return over + list(rows.filter(at__gt=now - AFTER).order_by("-at", "-pk")[: JUDGED_MAX - len(over)])


def _pause(event: RebalanceEvent, now: datetime) -> Pause | None:
    told_since = event.details.get("since")
    since = datetime.fromisoformat(told_since) if told_since else event.at
    until = min(now, event.at + AFTER)
    found = hot_window.group_samples(event.group, since - BEFORE, until)
    queues = {_queue(move) for move in event.details.get("moves", ())}
    return pause(found, queues, since_s=since.timestamp(), at_s=event.at.timestamp(), until_s=until.timestamp())


def _queue(move: Mapping[str, Any]) -> MessageQueue:
    return MessageQueue(move["topic"], move["broker"], move["queue_id"])


def _details(found: Pause) -> dict[str, Any]:
    queue = found.queue
    return {
        "at_least_s": found.at_least_s,
        "at_most_s": found.at_most_s,
        "is_over": found.is_over,
        "topic": queue.topic if queue else "",
        "broker": queue.broker_name if queue else "",
        "queue_id": queue.queue_id if queue else None,
    }
