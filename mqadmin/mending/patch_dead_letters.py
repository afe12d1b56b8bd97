"""Mends many dead letters of a group by one JSON Patch: those of a failure, or those that are named.

One run takes PATCHED_MAX of them, the latest first, and says where the next one goes on. The patch is applied to what
a replay would send now, the mended copy where there is one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import ContentField, IdField
from mqadmin.actions.asking import who_asks
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, Preview
from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster
from mqadmin.clusters.selectors.newest_first import read_cursor, rows_behind, write_cursor
from mqadmin.deadletters.models import DeadLetter
from mqadmin.mending.json_patches import DoesNotApply, Patch, WrongPatch, apply, read_patch
from mqadmin.mending.mend_dead_letter import write_copy
from mqadmin.mending.originals import Content, Mending, NotToBeHad, change_between, is_hidden, mending_of

# Of one run: the audit names each, and a person waits.
PATCHED_MAX = 500
# Bodies that are not kept are asked for one by one; what is not read by then is left for a run of its own.
READ_WITHIN_S = 20.0
CURSOR_CHARS_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchDeadLetters:
    """`failure` None and `picks` "": none is chosen, which is refused. `after`: where an earlier run ended."""

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
            help_text=gettext_lazy("Their numbers, separated by commas; empty: all of the failure."),
            max_length=PATCHED_MAX * 20,
        ),
    ] = ""
    until: Annotated[
        datetime | None,
        forms.DateTimeField(
            label=gettext_lazy("Died before"), help_text=gettext_lazy("Those that die while you look are left out.")
        ),
    ] = None
    after: Annotated[
        str,
        forms.CharField(
            label=gettext_lazy("Go on after"),
            help_text=gettext_lazy("Where the run before said that it ended."),
            max_length=CURSOR_CHARS_MAX,
        ),
    ] = ""


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
    found, older = _chosen(cluster, arguments)
    if not found:
        raise ActionRefused(_("No dead letter of %(group)s is chosen by that.") % {"group": arguments.group})
    role, ends_s = who_asks().role_on(cluster), time.monotonic() + READ_WITHIN_S
    items = tuple(_patched(dead, patch, hidden=is_hidden(role, dead), ends_s=ends_s) for dead in found)
    plan = PatchPlan(items, older)
    warnings = [_("There are more: a further run goes on after %(after)s.") % {"after": older}] if older else []
    rests_on = {str(one.dead.pk): one.mending.version if one.mending is not None else None for one in items}
    return Preview(tuple(one.change for one in items), plan, tuple(warnings), rests_on)


def _chosen(cluster: Cluster, arguments: PatchDeadLetters) -> tuple[list[DeadLetter], str]:
    rows: QuerySet[DeadLetter] = DeadLetter.objects.filter(cluster=cluster, group_name=arguments.group)
    if arguments.picks:
        rows = rows.filter(pk__in=_numbers(arguments.picks))
    elif arguments.failure is None:
        raise ValidationError({"failure": _("Name a failure, or dead letters by their numbers.")})
    if arguments.failure is not None:
        rows = rows.filter(failure_id=arguments.failure)
    if not arguments.picks:
        rows = rows.filter(archived_at=None)
    if arguments.until is not None:
        rows = rows.filter(dead_at__lt=arguments.until)
    position = read_cursor(arguments.after)
    if arguments.after and position is None:
        raise ValidationError({"after": _("That is not where a run ended.")})
    if position is not None:
        rows = rows_behind(rows, "dead_at", *position)
    found = list(rows.select_related("kept", "mended").order_by("-dead_at", "-pk")[: PATCHED_MAX + 1])
    last = found[PATCHED_MAX - 1] if len(found) > PATCHED_MAX else None
    return found[:PATCHED_MAX], write_cursor(last.dead_at, last.pk) if last is not None else ""


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
    by = who_asks().name
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
