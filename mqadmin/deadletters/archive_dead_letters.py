"""Archives the dead letters of a group that a filter finds, and restores them: two actions, each the other's undo.

A run looks at a bounded number and says how many are left; the next one goes on with them, since what is done is not
found any more. Failures stay as they are.

What one run archived has its moment (`archived_at`), so taking it back restores that and nothing that was archived
before. What a run restored has no mark: the same filter archives it again, with `until` at the run's moment, and only
where everything that the filter found was archived.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import arguments_json
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, ItemState, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter
from mqadmin.deadletters.selection import (
    AttemptsArgument,
    BodyArgument,
    BornSinceArgument,
    BornUntilArgument,
    FailureArgument,
    IdsArgument,
    Selected,
    SinceArgument,
    TextArgument,
    UntilArgument,
    UserPropertyArgument,
    awaited,
    counted,
    selected,
    selection_of,
)
from mqadmin.groups.rules import GroupField
from mqadmin.people.current_caller import current_caller

# Rows of one transaction, so that it never holds SQLite's only writer for long.
STEP_ROWS = 1000
# Of one run, for which somebody waits.
ROWS_MAX = 50_000
WITHIN_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveDeadLetters:
    """Which dead letters of `group`: all that these fields say together."""

    group: Annotated[str, GroupField(label=gettext_lazy("Group"))]
    failure: FailureArgument = None
    text: TextArgument = ""
    body: BodyArgument = ""
    since: SinceArgument = None
    until: UntilArgument = None
    user_property: UserPropertyArgument = ""
    attempts: AttemptsArgument = None
    born_since: BornSinceArgument = None
    born_until: BornUntilArgument = None
    ids: IdsArgument = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreDeadLetters(ArchiveDeadLetters):
    """The same, of what is archived."""

    archived_at: Annotated[
        datetime | None,
        forms.DateTimeField(
            label=gettext_lazy("Archived at"),
            help_text=gettext_lazy("What one run archived at this very moment; none: whenever it was archived."),
        ),
    ] = None


def preview_archive(cluster: Cluster, arguments: ArchiveDeadLetters) -> Preview[Selected]:
    """Raises ActionRefused where none is found, and where that takes too long to find out."""
    with awaited():
        found = _found(cluster, arguments, is_archived=False)
        return _preview(found, {"archived": False})


def preview_restore(cluster: Cluster, arguments: RestoreDeadLetters) -> Preview[Selected]:
    """Raises ActionRefused where none is found, and where that takes too long to find out."""
    with awaited():
        found = _found(cluster, arguments, is_archived=True)
        if arguments.archived_at is not None:
            found = replace(found, rows=found.rows.filter(archived_at=arguments.archived_at))
        others = _found(cluster, arguments, is_archived=False).look(None, 1)
        # What a bounded look did not get to the end of may have some.
        others_listed = bool(others.rows) or others.place is not None
        return _preview(found, {"archived": True, "others_listed": others_listed})


def _found(cluster: Cluster, arguments: ArchiveDeadLetters, *, is_archived: bool) -> Selected:
    selection = selection_of(arguments, current_caller().role_on(cluster), is_archived=is_archived)
    newest = DeadLetter.objects.order_by("-pk").values_list("pk", flat=True).first()
    return selected(cluster, arguments.group, selection, until_id=newest or 0)


def _preview(found: Selected, now: dict[str, bool]) -> Preview[Selected]:
    """Returns what changes of those that are so now. Raises ActionRefused where there is none."""
    rows, has_more = counted(found)
    count = rows.count()
    if not count:
        raise ActionRefused(_("No dead letter of the group is selected."))
    warnings = []
    if has_more:
        text = _("More than %(n)d are selected; the figure here is that of the first.")
        warnings.append(text % {"n": count})
    if count > ROWS_MAX:
        words = _("One run takes %(n)d: run it again for the others.")
        warnings.append(words % {"n": ROWS_MAX})
    before = {"messages_selected": count, **now}
    change = Change("", before, {**before, "archived": not now["archived"]})
    # A dead letter more is no reason to look again.
    return Preview((change,), found, tuple(warnings), rests_on={"archived": now["archived"]})


def carry_out_archive(
    _cluster: Cluster, _arguments: ArchiveDeadLetters, preview: Preview[Selected]
) -> Iterator[ItemOutcome]:
    """Marks them with the moment of this run."""
    now = timezone.now()
    yield _carry_out(preview, now, {"archived_at": now.isoformat()})


def carry_out_restore(
    _cluster: Cluster, _arguments: RestoreDeadLetters, preview: Preview[Selected]
) -> Iterator[ItemOutcome]:
    """Takes the marks away."""
    yield _carry_out(preview, None, {"restored_at": timezone.now().isoformat()})


def _carry_out(preview: Preview[Selected], archived_at: datetime | None, moment: dict[str, str]) -> ItemOutcome:
    """Marks them, and says how many; what is left has to be asked for again."""
    (change,), found = preview.changes, preview.plan
    ends_s = time.monotonic() + WITHIN_S
    count, position, has_more = 0, None, True
    while has_more and count < ROWS_MAX and time.monotonic() < ends_s:
        looked = found.look(position, STEP_ROWS)
        position, has_more = looked.place, looked.place is not None
        ids = [row.pk for row in looked.rows]
        count += DeadLetter.objects.filter(pk__in=ids).update(archived_at=archived_at) if ids else 0
    note = _("There may be more: run it again for them.") if has_more else ""
    before = {**(change.before or {}), "messages_selected": count}
    done = Change("", before, {**change.after, "messages_selected": count, **moment}).done()
    return replace(done, words=note)


def undo_archive(arguments: ArchiveDeadLetters, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the restoring of what has this run's moment."""
    (outcome,) = outcomes
    if outcome.state != ItemState.DONE or outcome.after is None:
        return None
    return Undo(RESTORE_DECLARATION.name, _said(arguments) | {"archived_at": outcome.after["archived_at"]})


def undo_restore(arguments: RestoreDeadLetters, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the archiving of what the filter finds of the time before this run; None where it finds others, too."""
    (outcome,) = outcomes
    if outcome.state != ItemState.DONE or outcome.after is None or outcome.after["others_listed"]:
        return None
    said = {name: value for name, value in _said(arguments).items() if name != "archived_at"}
    return Undo(ARCHIVE_DECLARATION.name, {"until": outcome.after["restored_at"], **said})


def _said(arguments: ArchiveDeadLetters) -> dict[str, Any]:
    """Returns the arguments that say something, as plain JSON."""
    return {name: value for name, value in arguments_json(arguments).items() if value not in (None, "")}


ARCHIVE_DECLARATION: Action[ArchiveDeadLetters, Selected] = Action(
    name="archive_dead_letters",
    title=gettext_lazy("Archive dead letters"),
    permission="mq_deadletters.change_deadletter",
    arguments=ArchiveDeadLetters,
    subject="group",
    preview=preview_archive,
    carry_out=carry_out_archive,
    undo=undo_archive,
)
RESTORE_DECLARATION: Action[RestoreDeadLetters, Selected] = Action(
    name="restore_dead_letters",
    title=gettext_lazy("Restore dead letters"),
    permission="mq_deadletters.change_deadletter",
    arguments=RestoreDeadLetters,
    subject="group",
    preview=preview_restore,
    carry_out=carry_out_restore,
    undo=undo_restore,
)
