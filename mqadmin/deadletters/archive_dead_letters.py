"""Archives the dead letters of a group that a filter finds, and restores them: two actions.

A run looks at a bounded number and says how many are left; the next one goes on with them, since what is done is not
found any more. Failures stay as they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.asking import who_asks
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, Preview
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter
from mqadmin.deadletters.selection import (
    COUNTED_MAX,
    BodyArgument,
    FailureArgument,
    IdsArgument,
    Selected,
    SinceArgument,
    TextArgument,
    UntilArgument,
    counted,
    selected,
    selection_of,
)
from mqadmin.groups.rules import GroupField

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
    ids: IdsArgument = ""


def preview_archive(cluster: Cluster, arguments: ArchiveDeadLetters) -> Preview[Selected]:
    """Raises ActionRefused where none is found."""
    return _preview(cluster, arguments, is_archived=False)


def preview_restore(cluster: Cluster, arguments: ArchiveDeadLetters) -> Preview[Selected]:
    """Raises ActionRefused where none is found."""
    return _preview(cluster, arguments, is_archived=True)


def _preview(cluster: Cluster, arguments: ArchiveDeadLetters, *, is_archived: bool) -> Preview[Selected]:
    selection = selection_of(arguments, who_asks().role_on(cluster), is_archived=is_archived)
    newest = DeadLetter.objects.order_by("-pk").values_list("pk", flat=True).first()
    found = selected(cluster, arguments.group, selection, until_id=newest or 0)
    rows, has_more = counted(found)
    count = rows.count()
    if not count:
        raise ActionRefused(_("No dead letter of the group is selected."))
    warnings = []
    if has_more:
        text = _("More than %(n)d have this text; the figure here is that of the first.")
        warnings.append(text % {"n": COUNTED_MAX})
    if count > ROWS_MAX:
        words = _("One run takes %(n)d: run it again for the others.")
        warnings.append(words % {"n": ROWS_MAX})
    before = {"messages_selected": count, "archived": is_archived}
    change = Change("", before, {"messages_selected": count, "archived": not is_archived})
    # A dead letter more is no reason to look again.
    return Preview((change,), found, tuple(warnings), rests_on={"archived": is_archived})


def carry_out_archive(
    _cluster: Cluster, _arguments: ArchiveDeadLetters, preview: Preview[Selected]
) -> Iterator[ItemOutcome]:
    yield _carry_out(preview, timezone.now())


def carry_out_restore(
    _cluster: Cluster, _arguments: ArchiveDeadLetters, preview: Preview[Selected]
) -> Iterator[ItemOutcome]:
    yield _carry_out(preview, None)


def _carry_out(preview: Preview[Selected], archived_at: datetime | None) -> ItemOutcome:
    """Marks them, and says how many; what is left has to be asked for again."""
    (change,), found = preview.changes, preview.plan
    ends_s = time.monotonic() + WITHIN_S
    count, position, has_more = 0, None, True
    while has_more and count < ROWS_MAX and time.monotonic() < ends_s:
        rows = found.after(position, STEP_ROWS)
        has_more = len(rows) == STEP_ROWS
        if rows:
            position = found.position(rows[-1])
            count += DeadLetter.objects.filter(pk__in=[row.pk for row in rows]).update(archived_at=archived_at)
    after = {**change.after, "messages_selected": count}
    note = _("There may be more: run it again for them.") if has_more else ""
    done = Change("", {**(change.before or {}), "messages_selected": count}, after).done()
    return replace(done, words=note)


ARCHIVE_DECLARATION: Action[ArchiveDeadLetters, Selected] = Action(
    name="archive_dead_letters",
    title=gettext_lazy("Archive dead letters"),
    permission="mq_deadletters.change_deadletter",
    arguments=ArchiveDeadLetters,
    subject="group",
    preview=preview_archive,
    carry_out=carry_out_archive,
)
RESTORE_DECLARATION: Action[ArchiveDeadLetters, Selected] = Action(
    name="restore_dead_letters",
    title=gettext_lazy("Restore dead letters"),
    permission="mq_deadletters.change_deadletter",
    arguments=ArchiveDeadLetters,
    subject="group",
    preview=preview_restore,
    carry_out=carry_out_restore,
)
