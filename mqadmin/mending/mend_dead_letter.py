"""Writes a mended copy of a dead letter: another body, other properties, to be sent in place of its own.

The original is kept. A later mending replaces the copy; one that began at an older copy is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import ContentField, CountField, IdField
from mqadmin.actions.declaration import (
    Action,
    ActionRefused,
    ActionUnavailable,
    ItemOutcome,
    ItemState,
    Preview,
    Undo,
)
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter, MendedCopy
from mqadmin.deadletters.subjects import require_dead_letter
from mqadmin.mending import editable_properties
from mqadmin.mending.editable_properties import WrongProperties
from mqadmin.mending.originals import (
    Content,
    Mending,
    NotToBeHad,
    change_between,
    keep_original,
    mending_of,
    require_sight,
)
from mqadmin.mending.typed_bodies import TypedAs, WrongBody, read_typed
from mqadmin.people.current_caller import current_caller
from remoting.wire.limits import BODY_BYTES_MAX

_TYPED_AS = tuple(
    zip(TypedAs, (gettext_lazy("text"), gettext_lazy("hexadecimal"), gettext_lazy("Base64")), strict=True)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MendDeadLetter:
    """`body` None: as it is; `properties` None: as they are, else all that shall be there."""

    dead_letter: Annotated[int, IdField(label=gettext_lazy("Dead letter"))]
    body: Annotated[str | None, ContentField(label=gettext_lazy("Body"), max_length=3 * BODY_BYTES_MAX)] = None
    body_as: Annotated[str, forms.ChoiceField(label=gettext_lazy("Typed as"), choices=_TYPED_AS)] = TypedAs.TEXT
    properties: Annotated[dict[str, str] | None, forms.JSONField(label=gettext_lazy("Properties"))] = None
    version: Annotated[
        int | None,
        CountField(
            label=gettext_lazy("Version"),
            help_text=gettext_lazy("Of the mended copy that was edited; 0: there was none. A newer one refuses."),
            min_value=0,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class MendPlan:
    """What is there, and what the copy becomes."""

    dead: DeadLetter
    mending: Mending
    wanted: Content


def preview(cluster: Cluster, arguments: MendDeadLetter) -> Preview[MendPlan]:
    """Returns what of the original the copy changes."""
    dead = require_dead_letter(cluster, arguments.dead_letter)
    require_sight(cluster, dead)
    try:
        mending = mending_of(dead)
    except NotToBeHad as error:
        raise ActionUnavailable(str(error)) from error
    if arguments.version is not None and arguments.version != mending.version:
        words = _("%(person)s has mended it meanwhile. Your text is kept below: open the page anew to see theirs.")
        gone = _("Its mended copy was discarded meanwhile. Your text is kept below.")
        raise ActionRefused(words % {"person": mending.by} if mending.version else gone)
    wanted = Content(_body(arguments, mending), _properties(arguments, dead, mending))
    change = change_between("", mending.original, wanted)
    # Nothing to do where a replay would send that already, or where there is nothing to mend.
    if wanted == mending.present:
        change = change_between("", wanted, wanted)
    rests_on = {"version": mending.version, "by": mending.by}
    return Preview((change,), MendPlan(dead, mending, wanted), rests_on=rests_on)


def _body(arguments: MendDeadLetter, mending: Mending) -> bytes:
    if arguments.body is None:
        return mending.present.body
    try:
        return read_typed(mending.original.body, arguments.body, TypedAs(arguments.body_as))
    except WrongBody as error:
        raise ValidationError({"body": str(error)}) from error


def _properties(arguments: MendDeadLetter, dead: DeadLetter, mending: Mending) -> dict[str, str]:
    wanted: Any = arguments.properties
    if wanted is None:
        return mending.present.properties
    if not isinstance(wanted, dict) or not all(isinstance(value, str) for value in wanted.values()):
        raise ValidationError({"properties": _('Properties are an object of texts: {"colour": "red"}.')})
    try:
        editable_properties.check(dead.kept.properties, wanted)
    except WrongProperties as error:
        raise ValidationError({"properties": str(error)}) from error
    return dict(wanted)


def carry_out(_cluster: Cluster, _arguments: MendDeadLetter, preview: Preview[MendPlan]) -> Iterator[ItemOutcome]:
    """Writes the copy, unless somebody else wrote one since."""
    (change,), plan = preview.changes, preview.plan
    if not change.is_change:
        yield change.unchanged()
    elif write_copy(plan.dead, plan.mending, plan.wanted, by=current_caller().name):
        yield change.done()
    else:
        yield change.failed(_("Somebody else has mended it in between."))


def write_copy(dead: DeadLetter, mending: Mending, wanted: Content, *, by: str) -> bool:
    """Writes the copy in place of the version that was read; returns False where that is not the present one."""
    mended = editable_properties.mended(dead.kept.properties, wanted.properties)
    values = {"body": wanted.body, "properties": mended, "mended_by": by, "mended_at": timezone.now()}
    version = mending.version + 1
    try:
        with transaction.atomic():
            keep_original(dead, mending.original.body)
            if mending.version == 0:
                MendedCopy.objects.create(dead_letter=dead, version=version, **values)
                return True
            rows = MendedCopy.objects.filter(pk=dead.pk, version=mending.version)
            return bool(rows.update(version=version, **values))
    except IntegrityError:
        return False


def undo(arguments: MendDeadLetter, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the discarding of the copy."""
    (outcome,) = outcomes
    if outcome.state != ItemState.DONE:
        return None
    return Undo("discard_mend", {"dead_letter": arguments.dead_letter})


DECLARATION: Action[MendDeadLetter, MendPlan] = Action(
    name="mend_dead_letter",
    title=gettext_lazy("Mend a dead letter"),
    permission="mq_deadletters.change_mendedcopy",
    arguments=MendDeadLetter,
    subject="dead_letter",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
)
