"""Judges one queue of a group by the rules for groups."""

from __future__ import annotations

from datetime import datetime

from mqadmin.clusters import figures
from mqadmin.clusters.models import Group, QueueOffset, Verdict
from mqadmin.lag.verdicts import NOT_SUBSCRIBED, Judgement, VerdictInput, judge
from mqadmin.objectives.values import DEFAULT_LAG_S


def judge_queue(group: Group, queue: QueueOffset, now: datetime) -> Judgement:
    """Returns the verdict of a queue whose `end` is attached. Whether its lag grows is not known, so none is SLOW."""
    if queue.is_subscribed is False:
        return Judgement(Verdict.QUIET, NOT_SUBSCRIBED, {})
    behind = queue.behind
    behind_since = behind.since
    is_away = queue.broker_name in group.cluster.brokers_away
    standing_since = None
    if queue.lag and queue.committed_since is not None and behind_since is not None and not is_away:
        standing_since = max(queue.committed_since, behind_since)
    return judge(
        VerdictInput(
            now=now,
            is_broadcast=group.message_model == "BROADCASTING",
            member_count=group.member_count,
            lag=queue.lag,
            behind_since=behind_since,
            seen_until=behind.seen_until(now),
            standing_since=standing_since,
            moved_at=queue.moved_at,
            is_any_broker_away=is_away,
            rewound_count=figures.rewound_count(queue.committed_offset, queue.rewound_from, queue.max_offset),
            is_pulled=None if queue.owner is None else bool(queue.owner),
            allowed_lag_s=group.allowed_lag_s or DEFAULT_LAG_S,
        )
    )
