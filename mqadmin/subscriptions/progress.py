"""Writes where members said that they are in their queues, and says what moved between them since they said it last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Q

from mqadmin.clusters import held_queues
from mqadmin.clusters.bulk import update
from mqadmin.clusters.held_queues import HeldQueue
from mqadmin.clusters.models import BROADCASTING, ID_MAX, Member, MemberProgress
from mqadmin.observing.gateway import MemberTold
from mqadmin.observing.signals import GroupTold, QueueMove
from mqadmin.subscriptions.queue_moves import moves
from remoting.wire.bodies.message_queue import MessageQueue

# Who left longer ago has lost its queues to others, which have said so since: each is asked within two minutes.
_LEFT_WITHIN = timedelta(minutes=15)
# Who joined longer ago may hold its queues for longer than it is asked: one that is new is asked next.
_JOINED_WITHIN = timedelta(minutes=15)
# More than any client holds.
_IN_FLIGHT_MAX = 2**31 - 1


class _Known(NamedTuple):
    """What a member of a group said before this time. `has_left`: it left the group, and says nothing any more."""

    client_id: str
    first_seen_at: datetime
    has_left: bool
    told_at: datetime
    queues: dict[MessageQueue, HeldQueue]


def write_progress(told: Mapping[int, MemberTold], at: datetime) -> list[GroupTold]:
    """Writes what these members (by key) hold; returns their groups, each with what moved."""
    members = {row.pk: row for row in Member.objects.filter(pk__in=told)}
    known: defaultdict[int, dict[int, _Known]] = defaultdict(dict)
    groups = {member.group_id for member in members.values()}
    present = Q(member__left_at=None) | Q(member__left_at__gte=at - _LEFT_WITHIN) | Q(member__in=members)
    rows = list(MemberProgress.objects.filter(present, member__group__in=groups).select_related("member"))
    for row in rows:
        has_left = row.member.left_at is not None and row.pk not in told
        member = row.member
        said = _Known(member.client_id, member.first_seen_at, has_left, row.told_at, held_queues.read(row.queues))
        known[member.group_id][row.pk] = said
    written, is_known = [], {row.pk for row in rows}
    for pk, member in members.items():
        before = known[member.group_id].get(pk)
        held = held_queues.renewed(before.queues if before else {}, _held(told[pk], at))
        written.append(
            MemberProgress(
                member=member,
                told_at=at,
                consume_timeout_s=told[pk].consume_timeout_s,
                queues=[one.as_row() for one in held],
            )
        )
    MemberProgress.objects.bulk_create([row for row in written if row.pk not in is_known])
    update(MemberProgress, [row for row in written if row.pk in is_known], ["told_at", "consume_timeout_s", "queues"])
    of_groups: defaultdict[int, dict[int, MemberTold]] = defaultdict(dict)
    for pk, member in members.items():
        of_groups[member.group_id][pk] = told[pk]
    said_now = [
        _group_told(group_id, known[group_id], of_group, members, at)
        for group_id, of_group in sorted(of_groups.items())
    ]
    _forget_moved(said_now, [row for row in rows if row.pk not in told])
    return said_now


def _forget_moved(groups: Iterable[GroupTold], silent: Iterable[MemberProgress]) -> None:
    """Takes queues that another member holds now from those that said nothing this time.

    Some left, or are stopped in their tracks: when they come back and hold the same as before, that is a move, too.
    """
    moved: defaultdict[tuple[int, str], set[MessageQueue]] = defaultdict(set)
    for group in groups:
        for move in group.moves:
            if move.to_client:
                moved[group.group_id, move.from_client].add(move.queue)
    changed = []
    for row in silent:
        if gone := moved.get((row.member.group_id, row.member.client_id)):
            row.queues = [one.as_row() for queue, one in held_queues.read(row.queues).items() if queue not in gone]
            changed.append(row)
    update(MemberProgress, changed, ["queues"])


def _group_told(
    group_id: int,
    known: Mapping[int, _Known],
    told: Mapping[int, MemberTold],
    members: Mapping[int, Member],
    at: datetime,
) -> GroupTold:
    """Each member of a broadcasting group holds all queues, so nothing moves between them."""
    if any(one.message_model == BROADCASTING for one in told.values()):
        return GroupTold(group_id)
    before = {one.client_id: one.queues.keys() for one in known.values()}
    left = {one.client_id for one in known.values() if one.has_left}
    holds_now = {members[pk].client_id: set(one.queues) for pk, one in told.items()}
    moved = moves(before, holds_now, left=left, joined=_joined(known, [members[pk] for pk in told], at))
    told_at = {one.client_id: one.told_at for one in known.values()}
    seen_before = [since for move in moved if (since := _seen_before(move, told_at))]
    return GroupTold(group_id, moved, min(seen_before, default=None))


def _joined(known: Mapping[int, _Known], told: Iterable[Member], at: datetime) -> set[str]:
    """Returns who of those that told came lately, and later than another one of whom it was known what it holds."""
    first = min((one.first_seen_at for one in known.values()), default=at)
    return {one.client_id for one in told if one.first_seen_at > max(first, at - _JOINED_WITHIN)}


def _seen_before(move: QueueMove, told_at: Mapping[str, datetime]) -> datetime | None:
    """Returns when one of the two said last that the queue had not moved yet."""
    return max((told_at[one] for one in (move.from_client, move.to_client) if one in told_at), default=None)


def _held(one: MemberTold, at: datetime) -> Iterable[HeldQueue]:
    for queue in one.queues:
        said = one.progress.get(queue)
        if said is None:
            yield HeldQueue(queue, None, at.timestamp())
            continue
        yield HeldQueue(
            queue,
            said.commit_offset if 0 <= said.commit_offset <= ID_MAX else None,
            at.timestamp(),
            max(0, min(said.cached_msg_count, _IN_FLIGHT_MAX)),
            bool(one.is_orderly) and queue.topic in one.failing_topics,
        )
