"""Which groups' members do not want the same: one row per conflict that lasts, and a word when one begins or ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from mqadmin.clusters.bulk import chunks
from mqadmin.clusters.models import Cluster, Group
from mqadmin.subscriptions.consistency import Finding, MemberView, findings
from mqadmin.subscriptions.models import GroupConflict
from mqadmin.subscriptions.signals import ConflictsChanged, conflicts_changed
from mqadmin.subscriptions.views_of_members import group_views


def judge(cluster: Cluster, group_ids: Collection[int], at: datetime) -> int:
    """Compares the members of these groups; returns how many rows it wrote. Call it in a transaction."""
    written_count, changed = 0, set()
    for ids in chunks(sorted(group_ids)):
        known = {row.group_id: row for row in GroupConflict.objects.filter(group__in=ids)}
        for group_id, view in group_views(ids).items():
            found = findings(view.members, view.table)
            row = known.get(group_id)
            is_written = _note(group_id, row, found[0], at) if found else _end(row, view.members)
            if not is_written:
                continue
            written_count += 1
            changed.add(group_id)
    if changed:
        names = dict(Group.objects.filter(pk__in=changed).values_list("pk", "name"))
        conflicts_changed.send(sender=GroupConflict, event=ConflictsChanged(cluster, sorted(names.values())))
    return written_count


def _end(row: GroupConflict | None, members: Sequence[MemberView]) -> bool:
    """Deletes the conflict, unless there are several members still and none of them is known."""
    if row is None or (len(members) > 1 and all(member.topics is None for member in members)):
        return False
    row.delete()
    return True


def _note(group_id: int, row: GroupConflict | None, worst: Finding, at: datetime) -> bool:
    """Writes the conflict where it is new or another one; returns whether it did."""
    values = {
        "kind": worst.kind.value,
        "topic_name": worst.topic,
        "odd_count": len(worst.odd),
        "member_count": worst.member_count,
    }
    if row is not None and all(getattr(row, name) == value for name, value in values.items()):
        return False
    since = row.since if row is not None else min(worst.since or at, at)
    GroupConflict.objects.update_or_create(group_id=group_id, defaults={**values, "since": since, "seen_at": at})
    return True
