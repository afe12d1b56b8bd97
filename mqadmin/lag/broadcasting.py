"""Broadcasting groups: each member gets every message and keeps its own offsets, so its own answer says where it is.

A group of them is as far as its member that is furthest behind: that member's queues stand for the group's. What a
broker has as committed offsets of such a group counts for nothing. A member is compared with the ends of queues as
they were when it answered: what came later it has not been asked about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from mqadmin.clusters import held_queues, waiting
from mqadmin.clusters.held_queues import HeldQueue
from mqadmin.clusters.models import BROADCASTING, Group, MemberProgress
from mqadmin.lag import sums
from mqadmin.lag.in_flight import STANDS_S
from mqadmin.lag.members_progress import progress_online
from mqadmin.lag.sums import GroupRows, QueueEnd, QueueRow, Sums
from remoting.wire.bodies.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class MemberLag:
    """How far one member was when it answered. `lag` None: not known; it is the sum over the other queues."""

    lag: int | None
    queue_count: int
    unknown_queue_count: int
    behind_since: datetime | None
    told_at: datetime


def of_members(group: Group) -> dict[int, MemberLag]:
    """Returns by the key of the member how far those are that are online; of a clustering group nothing."""
    if group.message_model != BROADCASTING:
        return {}
    progress = _progress([group.pk])
    ends = _ends(group.cluster_id, progress)
    return {row.pk: _lag(row, sums.sums(member_rows(row, ends), ())) for row in progress}


def read(cluster_id: int, group_ids: Collection[int]) -> dict[int, GroupRows]:
    """Returns, by group, the rows that count (`sums.read`); of one that broadcasts those of its furthest member."""
    return sums.read(cluster_id, group_ids) | _of_broadcasting(cluster_id, group_ids)


def _of_broadcasting(cluster_id: int, group_ids: Collection[int]) -> dict[int, GroupRows]:
    """Returns, of those groups that broadcast, the rows of the member that is furthest behind; none before one told."""
    broadcasting = Group.objects.filter(pk__in=group_ids, message_model=BROADCASTING)
    found: dict[int, GroupRows] = dict.fromkeys(broadcasting.values_list("pk", flat=True), GroupRows())
    if not found:
        return {}
    progress = _progress(found)
    ends = _ends(cluster_id, progress)
    of_group: defaultdict[int, list[GroupRows]] = defaultdict(list)
    for row in progress:
        of_group[row.member.group_id].append(member_rows(row, ends))
    return found | {pk: max(rows, key=lambda one: sums.sums(one, ()).lag or 0) for pk, rows in of_group.items()}


def member_rows(row: MemberProgress, ends: Mapping[MessageQueue, QueueEnd]) -> GroupRows:
    """Returns what the member said, as rows of progress. Their keys are below 0: nothing of them is written."""
    held = list(held_queues.read(row.queues).values())
    return GroupRows(
        rows=[
            QueueRow(*one.queue, -1 - number, one.next_offset, _stands_since(one, row.told_at))
            for number, one in enumerate(held)
        ],
        ends={one.queue: _end_at(ends[one.queue], row.told_at) for one in held if one.queue in ends},
        moved_at=max((datetime.fromtimestamp(one.since_s, UTC) for one in held), default=None),
        seen_at=row.told_at,
        of_member=row.member.client_id,
    )


def _end_at(end: QueueEnd, at: datetime) -> QueueEnd:
    """Returns the end as it was then, as far as was seen."""
    was = waiting.max_at(end.max_history, int(at.timestamp()))
    return end if was is None or was >= end.max_offset else end._replace(max_offset=was, last_stored_at=None)


def _stands_since(one: HeldQueue, told_at: datetime) -> datetime | None:
    """Returns since when the member is where it is, once its answers say so for long enough: it is not asked always."""
    stood_s = told_at.timestamp() - one.since_s
    return datetime.fromtimestamp(one.since_s, UTC) if stood_s >= STANDS_S else None


def _progress(group_ids: Iterable[int]) -> list[MemberProgress]:
    return list(progress_online(group_ids).select_related("member").order_by("pk"))


def _ends(cluster_id: int, progress: Iterable[MemberProgress]) -> dict[MessageQueue, QueueEnd]:
    return sums.ends_of(cluster_id, {queue[0] for row in progress for queue in row.queues})


def _lag(row: MemberProgress, total: Sums) -> MemberLag:
    return MemberLag(
        lag=total.lag,
        queue_count=total.queue_count,
        unknown_queue_count=total.queue_count - total.known_count,
        behind_since=total.behind.since,
        told_at=row.told_at,
    )
