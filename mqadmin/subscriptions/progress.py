"""Writes where members said that they are in their queues, and says what moved between them since they said it last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from mqadmin.clusters import held_queues
from mqadmin.clusters.bulk import update
from mqadmin.clusters.held_queues import HeldQueue
from mqadmin.clusters.models import BROADCASTING, ID_MAX, Member, MemberProgress
from mqadmin.observing.gateway import MemberTold
from mqadmin.observing.signals import GroupTold
from mqadmin.subscriptions.queue_moves import moves
from remoting.wire.bodies.message_queue import MessageQueue

# More than any client holds.
_IN_FLIGHT_MAX = 2**31 - 1


class _Known(NamedTuple):
    """What a member of a group said before this time."""

    client_id: str
    told_at: datetime
    queues: dict[MessageQueue, HeldQueue]


def write_progress(told: Mapping[int, MemberTold], at: datetime) -> list[GroupTold]:
    """Writes what these members (by key) hold; returns their groups, each with what moved."""
    members = {row.pk: row for row in Member.objects.filter(pk__in=told)}
    known: defaultdict[int, dict[int, _Known]] = defaultdict(dict)
    rows = MemberProgress.objects.filter(member__group__in={member.group_id for member in members.values()})
    for row in rows.select_related("member"):
        said = _Known(row.member.client_id, row.told_at, held_queues.read(row.queues))
        known[row.member.group_id][row.pk] = said
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
    return [
        _group_told(group_id, known[group_id], of_group, members) for group_id, of_group in sorted(of_groups.items())
    ]


def _group_told(
    group_id: int, known: Mapping[int, _Known], told: Mapping[int, MemberTold], members: Mapping[int, Member]
) -> GroupTold:
    """Each member of a broadcasting group holds all queues, so nothing moves between them."""
    if any(one.message_model == BROADCASTING for one in told.values()):
        return GroupTold(group_id)
    before = {one.client_id: one.queues.keys() for one in known.values()}
    moved = moves(before, {members[pk].client_id: set(one.queues) for pk, one in told.items()})
    # Since when it may have been so: nobody was asked in between.
    since = min((known[pk].told_at for pk in told if pk in known), default=None)
    return GroupTold(group_id, moved, since if moved else None)


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
