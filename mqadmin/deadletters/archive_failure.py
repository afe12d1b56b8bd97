"""Archives a failure, and restores it: two actions. What is archived is not in lists, and nothing of it is lost.

Its dead letters go with it. A message that dies of it afterwards shows the failure again, with that message alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import IdField
from mqadmin.actions.declaration import Action, Change, ItemOutcome, ItemState, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import archive_marks
from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.deadletters.subjects import failure_words, require_failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFailure:
    failure: Annotated[int, IdField(label=gettext_lazy("Failure"))]


def preview_archive(cluster: Cluster, arguments: ArchiveFailure) -> Preview[Failure]:
    """Returns what is archived. Raises ActionRefused where there is no such failure."""
    return _preview(cluster, arguments, is_archived_after=True)


def preview_restore(cluster: Cluster, arguments: ArchiveFailure) -> Preview[Failure]:
    """Returns what is shown again. Raises ActionRefused where there is no such failure."""
    return _preview(cluster, arguments, is_archived_after=False)


def _preview(cluster: Cluster, arguments: ArchiveFailure, *, is_archived_after: bool) -> Preview[Failure]:
    failure = require_failure(cluster, arguments.failure)
    is_archived = failure.archived_at is not None
    if not is_archived_after and not is_archived:
        # It was shown again when a message died of it, and the former ones are still archived.
        is_archived = DeadLetter.objects.filter(failure=failure, archived_at__isnull=False).exists()
    known = {"group": failure.group_name, "failure": failure_words(failure)}
    before = {**known, "archived": is_archived}
    return Preview((Change("", before, {**known, "archived": is_archived_after}),), failure)


def carry_out(_cluster: Cluster, _arguments: ArchiveFailure, preview: Preview[Failure]) -> Iterator[ItemOutcome]:
    """Marks the failure, and the first of its dead letters; the index marks the others."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    with transaction.atomic():
        archive_marks.mark(preview.plan, timezone.now() if change.after["archived"] else None)
    archive_marks.carry_on(archive_marks.STEPS_AT_ONCE, preview.plan)
    yield change.done()


def undo_archive(arguments: ArchiveFailure, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    return _undo(RESTORE_DECLARATION.name, arguments, outcomes)


def undo_restore(arguments: ArchiveFailure, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    return _undo(ARCHIVE_DECLARATION.name, arguments, outcomes)


def _undo(action: str, arguments: ArchiveFailure, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    (outcome,) = outcomes
    return Undo(action, {"failure": arguments.failure}) if outcome.state == ItemState.DONE else None


ARCHIVE_DECLARATION: Action[ArchiveFailure, Failure] = Action(
    name="archive_failure",
    title=gettext_lazy("Archive a failure"),
    permission="mq_deadletters.change_failure",
    arguments=ArchiveFailure,
    subject="failure",
    preview=preview_archive,
    carry_out=carry_out,
    undo=undo_archive,
)
RESTORE_DECLARATION: Action[ArchiveFailure, Failure] = Action(
    name="restore_failure",
    title=gettext_lazy("Restore a failure"),
    permission="mq_deadletters.change_failure",
    arguments=ArchiveFailure,
    subject="failure",
    preview=preview_restore,
    carry_out=carry_out,
    undo=undo_restore,
)
