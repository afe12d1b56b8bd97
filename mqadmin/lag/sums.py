"""What a group's queues add up to. Pure, but for the reading of the rows: tens of thousands at a time, so not models.

Owns the sums; what follows from them (rates, verdict, history) is `measuring.py`'s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zlib import crc32

from django.db.models import Max, Min

from mqadmin.clusters import figures, waiting
from mqadmin.clusters.bulk import chunks
from mqadmin.clusters.figures import Behind
from mqadmin.clusters.models import QueueOffset, TopicQueue, WaitingMethod
from mqadmin.lag.in_flight import StandingQueue
from remoting.wire.bodies.message_queue import MessageQueue


class QueueRow(NamedTuple):
    """What bears on a group's sums of its row of one queue; what follows the offset, where messages wait on it."""

    topic_name: str
    broker_name: str
    queue_id: int
    pk: int
    committed_offset: int | None
    committed_since: datetime | None = None
    behind_since: datetime | None = None
    behind_method: str = ""
    rewound_from: int | None = None

    @property
    def told(self) -> Behind:
        return Behind(self.behind_since, self.behind_method)


class QueueEnd(NamedTuple):
    """What bears on its readers of a topic's row of one queue."""

    max_offset: int
    max_history: bytes | memoryview
    last_stored_at: datetime | None


@dataclass(frozen=True, slots=True)
class GroupRows:
    """`moved_at`: the latest, `seen_at`: the oldest of the rows.

    `of_member`: the client whose own word they are, where the group broadcasts; their keys are below 0.
    """

    rows: Sequence[QueueRow] = ()
    ends: Mapping[MessageQueue, QueueEnd] = field(default_factory=dict)
    moved_at: datetime | None = None
    seen_at: datetime | None = None
    of_member: str = ""


@dataclass(slots=True)
class Sums:
    """Over the queues of one group. `known_count`, the totals and `lag` (None: no queue) are of those with a known lag.

    `rewound_count`: how many messages were consumed before, and will be again, because offsets were moved back.
    `standings`: the queues of brokers that answer with messages waiting, and since when each has stood.
    `standing_since`: since when the longest-standing queue with messages waiting has neither moved nor been empty, of
    brokers that answer. `waiting`: by the primary key of a row that does not say so itself, since when its next message
    has been waiting. `may_wait_since`: the earliest moment at which the next message may have come of a queue whose
    time follows from samples. `of_member`: as of the rows. A sum is as old as its oldest part: `seen_at`.
    """

    queue_count: int = 0
    known_count: int = 0
    lag: int | None = None
    max_total: int = 0
    committed_total: int = 0
    behind: Behind = figures.NOT_BEHIND
    standing_since: datetime | None = None
    standings: list[StandingQueue] = field(default_factory=list)
    moved_at: datetime | None = None
    seen_at: datetime | None = None
    is_any_away: bool = False
    rewound_count: int = 0
    fingerprint: int = 0
    of_member: str = ""
    waiting: list[tuple[int, Behind]] = field(default_factory=list)
    may_wait_since: datetime | None = None


def read(cluster_id: int, group_ids: Collection[int]) -> dict[int, GroupRows]:
    """Returns, by group, the rows that count: those of topics that its members subscribe to, where that is known."""
    of_groups = QueueOffset.objects.filter(group__in=group_ids).exclude(is_subscribed=False)
    rows: defaultdict[int, list[QueueRow]] = defaultdict(list)
    for group_id, *values in of_groups.values_list("group_id", *QueueRow._fields):
        rows[group_id].append(QueueRow(*values))
    ends = ends_of(cluster_id, {row.topic_name for of_group in rows.values() for row in of_group})
    # Moments are what takes long to read: of these the latest and the oldest are enough.
    bounds = of_groups.values_list("group_id").annotate(Max("moved_at"), Min("seen_at")).order_by()
    return {group_id: GroupRows(rows[group_id], ends, moved_at, seen_at) for group_id, moved_at, seen_at in bounds}


def sums(of_group: GroupRows, away: Container[str]) -> Sums:
    """Adds up one group's queues. Whether a queue of a broker that is `away` stands is not known."""
    total = Sums(queue_count=len(of_group.rows), moved_at=of_group.moved_at, seen_at=of_group.seen_at)
    total.of_member = of_group.of_member
    known: list[str] = []
    total_lag = 0
    for row in of_group.rows:
        end = end_of(row, of_group.ends)
        lag = figures.lag(row.committed_offset, end.max_offset) if end is not None else None
        if end is None or lag is None:
            continue
        known.append(f"{row.topic_name} {row.broker_name} {row.queue_id}")
        total.max_total += end.max_offset
        total.committed_total += row.committed_offset or 0
        is_away = row.broker_name in away
        total.is_any_away |= is_away
        total_lag += lag
        if lag:
            total.rewound_count += figures.rewound_count(row.committed_offset, row.rewound_from, end.max_offset)
            _add_waiting(total, row, end, lag, is_away=is_away)
    total.known_count = len(known)
    total.lag = total_lag if known else None
    total.behind = _longest(total)
    total.fingerprint = crc32("\n".join((*sorted(known), *filter(None, [of_group.of_member]))).encode())
    return total


def end_of(row: QueueRow, ends: Mapping[MessageQueue, QueueEnd]) -> QueueEnd | None:
    """Returns how far the row's queue reaches; None: not known."""
    return ends.get(row[:3])  # type: ignore[call-overload, no-any-return]  # a queue is equal to its three parts


def _longest(total: Sums) -> Behind:
    """Returns the longest wait; exact only where no queue can have waited longer whose time follows from samples."""
    behind = total.behind
    if behind.since is None or total.may_wait_since is None or total.may_wait_since >= behind.since:
        return behind
    return replace(behind, method=WaitingMethod.OBSERVED.value)


def _may_wait_since(committed_offset: int | None, end: QueueEnd) -> datetime:
    """Returns the last sample that did not have the message; the beginning of time where all of them had it."""
    without_s = waiting.seen_without_s(end.max_history, committed_offset or 0)
    return datetime.fromtimestamp(without_s or 0, UTC)


def _add_waiting(total: Sums, row: QueueRow, end: QueueEnd, lag: int, *, is_away: bool) -> None:
    behind = figures.behind(lag, row.committed_offset, row.told, end.max_history, end.last_stored_at)
    if behind.since is None:
        return
    if total.behind.since is None or behind.since < total.behind.since:
        total.behind = behind
    if behind.is_at_least:
        since = _may_wait_since(row.committed_offset, end)
        total.may_wait_since = min(since, total.may_wait_since or since)
    if row.committed_since is not None and not is_away:
        since = max(row.committed_since, behind.since)
        total.standings.append(StandingQueue(MessageQueue(row.topic_name, row.broker_name, row.queue_id), since))
        if total.standing_since is None or since < total.standing_since:
            total.standing_since = since
    if row.behind_since is None and not total.of_member:
        total.waiting.append((row.pk, behind))


def ends_of(cluster_id: int, topic_names: Iterable[str]) -> dict[MessageQueue, QueueEnd]:
    """Returns how far the queues of these topics reach."""
    return {MessageQueue(*row[:3]): QueueEnd(*row[3:]) for row in _end_rows(cluster_id, topic_names)}


def _end_rows(cluster_id: int, topic_names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    for names in chunks(topic_names):
        queues = TopicQueue.objects.filter(topic__cluster_id=cluster_id, topic__name__in=names)
        yield from queues.values_list("topic__name", "broker_name", "queue_id", *QueueEnd._fields)
