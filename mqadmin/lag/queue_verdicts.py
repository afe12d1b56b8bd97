"""Judges one queue of a group by the rules for groups, and by what it was lately, so that it does not flap either.

Pure. No verdict of a queue is stored: what it was follows from its samples in the hot window, judged one after the
other by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from mqadmin.clusters import figures
from mqadmin.clusters.models import BROADCASTING, Group, QueueOffset, Verdict
from mqadmin.lag.in_flight import STANDS_S, Held, InFlight, StandingQueue, in_flight
from mqadmin.lag.packing import QueueSample
from mqadmin.lag.verdicts import (
    GROWTH_WINDOW_S,
    NOT_SUBSCRIBED,
    STALLED_AFTER_S,
    Judgement,
    VerdictInput,
    is_settling,
    judge,
    settled,
)
from mqadmin.objectives.values import DEFAULT_LAG_S
from remoting.wire.bodies.message_queue import MessageQueue

# What was before has no bearing on the verdict now: growth is judged over five minutes, and has to be over for one.
PAST_S = 2 * GROWTH_WINDOW_S
# What was in flight then is not kept: that the group was BUSY says enough.
_TOOK_LONG = InFlight(STANDS_S, STANDS_S, 0, 1, datetime.max.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class QueueMoment:
    """A queue as it was sampled, which held until the next one; the group's verdict then, and its members online."""

    at: datetime
    sample: QueueSample
    group_verdict: Verdict
    member_count: int | None

    @property
    def behind_since(self) -> datetime | None:
        since_ms = self.sample.waiting_since_ms
        return datetime.fromtimestamp(since_ms / 1000, UTC) if since_ms else None


def judge_queue(
    group: Group,
    queue: QueueOffset,
    now: datetime,
    held: Mapping[MessageQueue, Held] | None = None,
    past: Sequence[QueueMoment] = (),
) -> Judgement:
    """Returns the verdict of a queue whose `end` is attached.

    `held`: what the members said of their queues. `past`: its samples of the last PAST_S, oldest first, without a gap;
    without them it is not known whether its lag grows.
    """
    if queue.is_subscribed is False:
        return Judgement(Verdict.QUIET, NOT_SUBSCRIBED, {})
    is_broadcast = group.message_model == BROADCASTING
    behind = queue.behind
    is_away = queue.broker_name in group.cluster.brokers_away
    standing_since = None
    if queue.lag and queue.committed_since is not None and behind.since is not None and not is_away:
        standing_since = max(queue.committed_since, behind.since)
    standing = [] if standing_since is None else [StandingQueue(_name(queue), standing_since)]
    was, calm_since = (None, None) if is_broadcast else _was(group, past, queue.moved_at)
    known = VerdictInput(
        now=now,
        is_broadcast=is_broadcast,
        member_count=group.member_count,
        # What a broker has of a broadcasting group is nobody's progress.
        lag=None if is_broadcast else queue.lag,
        lag_before=_lag_before(past, now),
        behind_since=behind.since,
        seen_until=behind.seen_until(now),
        standing_since=standing_since,
        moved_at=queue.moved_at,
        is_any_broker_away=is_away,
        rewound_count=figures.rewound_count(queue.committed_offset, queue.rewound_from, queue.max_offset),
        is_pulled=None if queue.owner is None else bool(queue.owner),
        in_flight=in_flight(standing, held or {}, now),
        allowed_lag_s=group.allowed_lag_s or DEFAULT_LAG_S,
        was=was,
    )
    return settled(known, judge(known), calm_since)[0]


def _was(
    group: Group, past: Sequence[QueueMoment], moved_at: datetime | None
) -> tuple[Verdict | None, datetime | None]:
    """Returns what the queue was called until it moved, or at its newest sample, and since when that was better."""
    was: Verdict | None = None
    calm_since: datetime | None = None
    came_there: datetime | None = None
    for number, one in enumerate(past):
        is_moved = number == 0 or past[number - 1].sample.committed_offset != one.sample.committed_offset
        came_there = one.at if is_moved or came_there is None else came_there
        # A sample holds until the next one, or until the queue moved: what time alone changed came before that.
        until = moved_at if number == len(past) - 1 else past[number + 1].at
        if not is_settling(was) and _is_calm(group, one, max(one.at, until or one.at)):
            continue
        known = _at(group, one, came_there)
        for at in [one.at] if until is None or until <= one.at else [one.at, until]:
            then = replace(known, now=at, lag_before=_lag_before(past, at), was=was)
            judged, calm_since = settled(then, judge(then), calm_since)
            was = judged.verdict
    return was, calm_since


def _is_calm(group: Group, one: QueueMoment, until: datetime) -> bool:
    """Tells whether nothing had waited for long enough until then that the queue was called what outlasts its cause."""
    since = one.behind_since
    if not one.sample.lag or since is None:
        return True
    return (until - since).total_seconds() < min(STALLED_AFTER_S, group.allowed_lag_s or DEFAULT_LAG_S)


def _at(group: Group, one: QueueMoment, came_there: datetime) -> VerdictInput:
    """Returns what was known of the queue at the sample. A queue that stood was BUSY where the group was."""
    behind_since = one.behind_since
    return VerdictInput(
        now=one.at,
        member_count=one.member_count,
        lag=one.sample.lag,
        behind_since=behind_since,
        standing_since=max(came_there, behind_since) if one.sample.lag and behind_since is not None else None,
        moved_at=came_there,
        in_flight=_TOOK_LONG if one.group_verdict == Verdict.BUSY else None,
        allowed_lag_s=group.allowed_lag_s or DEFAULT_LAG_S,
    )


def _lag_before(past: Sequence[QueueMoment], now: datetime) -> int | None:
    """Returns the lag GROWTH_WINDOW_S before."""
    before = now - timedelta(seconds=GROWTH_WINDOW_S)
    return next((one.sample.lag for one in reversed(past) if one.at <= before), None)


def _name(queue: QueueOffset) -> MessageQueue:
    return MessageQueue(queue.topic_name, queue.broker_name, queue.queue_id)
