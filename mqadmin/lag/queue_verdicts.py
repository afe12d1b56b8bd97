"""Judges one queue of a group by the rules for groups."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from mqadmin.clusters import figures
from mqadmin.clusters.models import BROADCASTING, Group, QueueOffset, Verdict
from mqadmin.lag.in_flight import Held, Standing, in_flight
from mqadmin.lag.verdicts import NOT_SUBSCRIBED, Judgement, VerdictInput, judge
from mqadmin.objectives.values import DEFAULT_LAG_S
from remoting.wire.bodies.message_queue import MessageQueue


def judge_queue(
    group: Group, queue: QueueOffset, now: datetime, held: Mapping[MessageQueue, Held] | None = None
) -> Judgement:
    """Returns the verdict of a queue whose `end` is attached. Whether its lag grows is not known, so none is SLOW.

    `held`: what the members said of their queues.
    """
    if queue.is_subscribed is False:
        return Judgement(Verdict.QUIET, NOT_SUBSCRIBED, {})
    is_broadcast = group.message_model == BROADCASTING
    behind = queue.behind
    behind_since = behind.since
    is_away = queue.broker_name in group.cluster.brokers_away
    standing_since = None
    if queue.lag and queue.committed_since is not None and behind_since is not None and not is_away:
        standing_since = max(queue.committed_since, behind_since)
    standing = [] if standing_since is None else [Standing(_name(queue), standing_since)]
    return judge(
        VerdictInput(
            now=now,
            is_broadcast=is_broadcast,
            member_count=group.member_count,
            # What a broker has of a broadcasting group is nobody's progress.
            lag=None if is_broadcast else queue.lag,
            behind_since=behind_since,
            seen_until=behind.seen_until(now),
            standing_since=standing_since,
            moved_at=queue.moved_at,
            is_any_broker_away=is_away,
            rewound_count=figures.rewound_count(queue.committed_offset, queue.rewound_from, queue.max_offset),
            is_pulled=None if queue.owner is None else bool(queue.owner),
            in_flight=in_flight(standing, held or {}, now),
            allowed_lag_s=group.allowed_lag_s or DEFAULT_LAG_S,
        )
    )


def _name(queue: QueueOffset) -> MessageQueue:
    return MessageQueue(queue.topic_name, queue.broker_name, queue.queue_id)
