"""Archives one dead letter, and restores it: two actions. What is archived is not in lists; nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django.utils import timezone
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import IdField
from mqadmin.actions.declaration import Action, Change, ItemOutcome, ItemState, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter
from mqadmin.deadletters.subjects import require_dead_letter


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveDeadLetter:
    dead_letter: Annotated[int, IdField(label=gettext_lazy("Dead letter"))]


def preview_archive(cluster: Cluster, arguments: ArchiveDeadLetter) -> Preview[DeadLetter]:
    """Raises ActionRefused where there is no such dead letter."""
    return _preview(cluster, arguments, is_archived_after=True)


def preview_restore(cluster: Cluster, arguments: ArchiveDeadLetter) -> Preview[DeadLetter]:
    """Raises ActionRefused where there is no such dead letter."""
    return _preview(cluster, arguments, is_archived_after=False)


def _preview(cluster: Cluster, arguments: ArchiveDeadLetter, *, is_archived_after: bool) -> Preview[DeadLetter]:
    dead = require_dead_letter(cluster, arguments.dead_letter)
    known = {"group": dead.group_name, "message": dead.message_id}
    before = {**known, "archived": dead.archived_at is not None}
    return Preview((Change("", before, {**known, "archived": is_archived_after}),), dead)


def carry_out(_cluster: Cluster, _arguments: ArchiveDeadLetter, preview: Preview[DeadLetter]) -> Iterator[ItemOutcome]:
    """Marks the dead letter; its failure stays as it is."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    archived_at = timezone.now() if change.after["archived"] else None
    DeadLetter.objects.filter(pk=preview.plan.pk).update(archived_at=archived_at)
    yield change.done()


def undo_archive(arguments: ArchiveDeadLetter, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    return _undo(RESTORE_DECLARATION.name, arguments, outcomes)


def undo_restore(arguments: ArchiveDeadLetter, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    return _undo(ARCHIVE_DECLARATION.name, arguments, outcomes)


def _undo(action: str, arguments: ArchiveDeadLetter, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    (outcome,) = outcomes
    return Undo(action, {"dead_letter": arguments.dead_letter}) if outcome.state == ItemState.DONE else None


ARCHIVE_DECLARATION: Action[ArchiveDeadLetter, DeadLetter] = Action(
    name="archive_dead_letter",
    title=gettext_lazy("Archive a dead letter"),
    permission="mq_deadletters.change_deadletter",
    arguments=ArchiveDeadLetter,
    subject="dead_letter",
    preview=preview_archive,
    carry_out=carry_out,
    undo=undo_archive,
)
RESTORE_DECLARATION: Action[ArchiveDeadLetter, DeadLetter] = Action(
    name="restore_dead_letter",
    title=gettext_lazy("Restore a dead letter"),
    permission="mq_deadletters.change_deadletter",
    arguments=ArchiveDeadLetter,
    subject="dead_letter",
    preview=preview_restore,
    carry_out=carry_out,
    undo=undo_restore,
)
