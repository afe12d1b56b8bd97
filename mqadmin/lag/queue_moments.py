"""Reads what the queues of a group were lately, from the hot window, for their verdicts."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta

from mqadmin.clusters.models import Group
from mqadmin.lag.hot_window import Gap, group_samples
from mqadmin.lag.queue_verdicts import PAST_S, QueueMoment
from remoting.wire.bodies.message_queue import MessageQueue


def queue_moments(group: Group, now: datetime) -> dict[MessageQueue, list[QueueMoment]]:
    """Returns the samples of each queue since PAST_S ago or the last gap, with the one that held then, oldest first."""
    found: defaultdict[MessageQueue, list[QueueMoment]] = defaultdict(list)
    for one in group_samples(group, now - timedelta(seconds=PAST_S), now):
        if isinstance(one, Gap):
            found.clear()
            continue
        at = datetime.fromtimestamp(one.at_s, UTC)
        for sample in one.queues:
            queue = MessageQueue(one.topic, sample.broker_name, sample.queue_id)
            found[queue].append(QueueMoment(at, sample, one.verdict, one.member_count))
    return dict(found)
