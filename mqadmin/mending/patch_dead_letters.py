"""Mends many dead letters of a group by one JSON Patch: what a filter finds, as a replay selects it, or those named.

One run takes PATCHED_MAX of them, the latest first, and says where the next one goes on. The patch is applied to what
a replay would send now, the mended copy where there is one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import ContentField, IdField
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, Preview
from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster
from mqadmin.clusters.selectors.newest_first import read_cursor
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.deadletters.models import DeadLetter
from mqadmin.deadletters.selection import (
    ArchivedArgument,
    AttemptsArgument,
    BodyArgument,
    BornSinceArgument,
    BornUntilArgument,
    Selected,
    SinceArgument,
    TextArgument,
    UserPropertyArgument,
    awaited,
    selected,
    selection_of,
)
from mqadmin.mending.json_patches import DoesNotApply, Patch, WrongPatch, apply, read_patch
from mqadmin.mending.mend_dead_letter import write_copy
from mqadmin.mending.originals import Content, Mending, NotToBeHad, change_between, is_hidden, mending_of
from mqadmin.people.current_caller import current_caller

# Of one run: the audit names each, and a person waits.
PATCHED_MAX = 500
# Bodies that are not kept are asked for one by one; what is not read by then is left for a run of its own.
READ_WITHIN_S = 20.0
CURSOR_CHARS_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchDeadLetters:
    """Which dead letters of `group`: all that the filters say together, or `picks`. Neither: none is chosen, which is
    refused. `after`: where an earlier run ended."""

    group: Annotated[str, forms.CharField(label=gettext_lazy("Group"), max_length=NAME_CHARS_MAX)]
    patch: Annotated[
        str,
        ContentField(
            label=gettext_lazy("JSON Patch"),
            help_text=gettext_lazy('RFC 6902: [{"op": "replace", "path": "/currency", "value": "EUR"}]'),
        ),
    ]
    failure: Annotated[int | None, IdField(label=gettext_lazy("Failure"))] = None
    picks: Annotated[
        str,
        forms.CharField(
            label=gettext_lazy("Dead letters"),
            help_text=gettext_lazy("Their numbers, separated by commas; empty: all that the other fields say."),
            max_length=PATCHED_MAX * 20,
        ),
    ] = ""
    until: Annotated[
        datetime | None,
        forms.DateTimeField(
            label=gettext_lazy("Died before"), help_text=gettext_lazy("Those that die while you look are left out.")
        ),
    ] = None
    text: TextArgument = ""
    body: BodyArgument = ""
    since: SinceArgument = None
    user_property: UserPropertyArgument = ""
    attempts: AttemptsArgument = None
    born_since: BornSinceArgument = None
    born_until: BornUntilArgument = None
    archived: ArchivedArgument = "no"
    after: Annotated[
        str,
        forms.CharField(
            label=gettext_lazy("Go on after"),
            help_text=gettext_lazy("Where the run before said that it ended."),
            max_length=CURSOR_CHARS_MAX,
        ),
    ] = ""

    @property
    def ids(self) -> str:
        """Returns none: what is named is no filter here, since it may be archived or not."""
        return ""


@dataclass(frozen=True, slots=True)
class Patched:
    """One dead letter: `wanted` is what the patch makes of it, None where it does not apply, and `words` why."""

    dead: DeadLetter
    mending: Mending | None
    wanted: Content | None
    words: str = ""

    @property
    def change(self) -> Change:
        """Returns the change as previews and the audit have it."""
        if self.mending is None or self.wanted is None:
            return Change(str(self.dead.pk), {}, {}, self.words)
        return change_between(str(self.dead.pk), self.mending.present, self.wanted)


@dataclass(frozen=True, slots=True)
class PatchPlan:
    """`older`: where the next run goes on; "" where none is left."""

    items: tuple[Patched, ...]
    older: str


def preview(cluster: Cluster, arguments: PatchDeadLetters) -> Preview[PatchPlan]:
    """Returns a change per dead letter; one to which the patch does not apply says why in its note."""
    try:
        patch = read_patch(arguments.patch)
    except WrongPatch as error:
        raise ValidationError({"patch": str(error)}) from error
    with awaited():
        found, older = _chosen(cluster, arguments)
    if not found and older:
        raise ActionRefused(_("None was found so far: a further run goes on after %(after)s.") % {"after": older})
    if not found:
        raise ActionRefused(_("No dead letter of %(group)s is chosen by that.") % {"group": arguments.group})
    role, ends_s = current_caller().role_on(cluster), time.monotonic() + READ_WITHIN_S
    items = tuple(_patched(dead, patch, hidden=is_hidden(role, dead), ends_s=ends_s) for dead in found)
    plan = PatchPlan(items, older)
    warnings = [_("There are more: a further run goes on after %(after)s.") % {"after": older}] if older else []
    rests_on = {str(one.dead.pk): one.mending.version if one.mending is not None else None for one in items}
    return Preview(tuple(one.change for one in items), plan, tuple(warnings), rests_on)


def _chosen(cluster: Cluster, arguments: PatchDeadLetters) -> tuple[Sequence[DeadLetter], str]:
    """Returns those of one run, and where the next one goes on; a bounded look may find none, and go on further on."""
    found = _picked(cluster, arguments) if arguments.picks else _filtered(cluster, arguments)
    if arguments.after and not _is_place(found, arguments.after):
        raise ValidationError({"after": _("That is not where a run ended.")})
    whole = replace(found, rows=found.rows.select_related("kept", "mended"))
    page = whole.page(arguments.after, PATCHED_MAX)
    return page.rows, page.older


def _picked(cluster: Cluster, arguments: PatchDeadLetters) -> Selected:
    if _filters(arguments) - {"failure"}:
        words = _("Those that are named are mended whatever a search finds: leave its fields empty.")
        raise ValidationError({"picks": words})
    rows: QuerySet[DeadLetter] = DeadLetter.objects.filter(
        cluster=cluster, group_name=arguments.group, pk__in=_numbers(arguments.picks)
    )
    if arguments.failure is not None:
        rows = rows.filter(failure_id=arguments.failure)
    if arguments.until is not None:
        rows = rows.filter(dead_at__lt=arguments.until)
    return NewestRows(rows, "dead_at")


def _filtered(cluster: Cluster, arguments: PatchDeadLetters) -> Selected:
    if not _filters(arguments):
        words = _("Name a failure, dead letters by their numbers, or what to search for.")
        raise ValidationError({"failure": words})
    selection = selection_of(arguments, current_caller().role_on(cluster), is_archived=arguments.archived == "yes")
    newest = DeadLetter.objects.order_by("-pk").values_list("pk", flat=True).first()
    return selected(cluster, arguments.group, selection, until_id=newest or 0)


def _filters(arguments: PatchDeadLetters) -> set[str]:
    """Returns the names of the filters that say something; `until` alone says when somebody looked."""
    return selection_of(arguments, None, is_archived=False).keys() - {"until", "role"}


def _is_place(found: Selected, cursor: str) -> bool:
    if isinstance(found, NewestRows):
        return read_cursor(cursor) is not None
    return cursor.isascii() and cursor.isdigit()


def _numbers(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if len(words) > PATCHED_MAX or not all(word.isascii() and word.isdigit() and len(word) <= 18 for word in words):
        words_of_rule = _("Numbers of dead letters, %(most)d at most, separated by commas.")
        raise ValidationError({"picks": words_of_rule % {"most": PATCHED_MAX}})
    return [int(word) for word in words]


def _patched(dead: DeadLetter, patch: Patch, *, hidden: bool, ends_s: float) -> Patched:
    if hidden:
        return Patched(dead, None, None, _("Its body is hidden from your role."))
    if dead.kept.body is None and time.monotonic() > ends_s:
        return Patched(dead, None, None, _("Its body is not kept, and there was no time left to ask the broker."))
    try:
        mending = mending_of(dead)
    except NotToBeHad as error:
        return Patched(dead, None, None, str(error))
    try:
        return Patched(dead, mending, Content(apply(patch, mending.present.body), mending.present.properties))
    except DoesNotApply as error:
        return Patched(dead, mending, None, str(error))


def carry_out(_cluster: Cluster, _arguments: PatchDeadLetters, preview: Preview[PatchPlan]) -> Iterator[ItemOutcome]:
    """Writes a copy for each to which the patch applies."""
    by = current_caller().name
    for one in preview.plan.items:
        change = one.change
        if one.mending is None or one.wanted is None:
            yield change.skipped(one.words)
        elif not change.is_change:
            yield change.unchanged()
        elif write_copy(one.dead, one.mending, one.wanted, by=by):
            yield change.done()
        else:
            yield change.failed(_("Somebody else has mended it in between."))


def reasons(items: Sequence[Patched]) -> dict[str, int]:
    """Returns why the patch does not apply, with how many there are of each reason, the most frequent first."""
    counts: dict[str, int] = {}
    for one in items:
        if one.wanted is None:
            counts[one.words] = counts.get(one.words, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


DECLARATION: Action[PatchDeadLetters, PatchPlan] = Action(
    name="patch_dead_letters",
    title=gettext_lazy("Mend dead letters by a JSON Patch"),
    permission="mq_deadletters.change_mendedcopy",
    arguments=PatchDeadLetters,
    subject="group",
    preview=preview,
    carry_out=carry_out,
)
