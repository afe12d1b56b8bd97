"""Discards the mended copy of a dead letter: it is its original again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import IdField
from mqadmin.actions.declaration import Action, Change, ItemOutcome, Preview
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import MendedCopy
from mqadmin.deadletters.subjects import require_dead_letter


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardMend:
    dead_letter: Annotated[int, IdField(label=gettext_lazy("Dead letter"))]


def preview(cluster: Cluster, arguments: DiscardMend) -> Preview[int]:
    """Returns that the copy is gone afterwards; `plan` is its version, 0 where there is none."""
    dead = require_dead_letter(cluster, arguments.dead_letter)
    copy = MendedCopy.objects.filter(pk=dead.pk).first()
    if copy is None:
        return Preview((Change("", {}, {}),), 0)
    before = {"mended_by": copy.mended_by, "version": copy.version, "body_bytes": len(copy.body)}
    warning = _("The mended copy is not kept: what was typed is gone.")
    return Preview((Change("", before, {}),), copy.version, (warning,))


def carry_out(cluster: Cluster, arguments: DiscardMend, preview: Preview[int]) -> Iterator[ItemOutcome]:
    """Deletes the copy that was looked at."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    dead = require_dead_letter(cluster, arguments.dead_letter)
    count, _rows = MendedCopy.objects.filter(pk=dead.pk, version=preview.plan).delete()
    yield change.done() if count else change.failed(_("Somebody else has mended it in between."))


DECLARATION: Action[DiscardMend, int] = Action(
    name="discard_mend",
    title=gettext_lazy("Discard a mended copy"),
    permission="mq_deadletters.change_mendedcopy",
    arguments=DiscardMend,
    subject="dead_letter",
    preview=preview,
    carry_out=carry_out,
)
