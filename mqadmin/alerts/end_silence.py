"""Ends a silence: what fires still is told with the next look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Action, Change, ItemOutcome, Preview
from mqadmin.alerts.models import SILENCE_NAME_CHARS_MAX, AlertSilence
from mqadmin.clusters.models import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSilence:
    silence: Annotated[str, forms.CharField(label=gettext_lazy("Silence"), max_length=SILENCE_NAME_CHARS_MAX)]


def preview(cluster: Cluster, arguments: EndSilence) -> Preview[AlertSilence]:
    row = AlertSilence.objects.filter(cluster=cluster, name=arguments.silence).first()
    if row is None:
        raise ValidationError({"silence": _("There is no silence of this name.")})
    return Preview((Change("", {"names": row.names, "rules": row.rules}, {}),), row)


def carry_out(_cluster: Cluster, _arguments: EndSilence, preview: Preview[AlertSilence]) -> Iterator[ItemOutcome]:
    preview.plan.delete()
    yield preview.changes[0].done()


DECLARATION: Action[EndSilence, AlertSilence] = Action(
    name="end_silence",
    title=gettext_lazy("End a silence"),
    permission="mq_alerts.delete_alertsilence",
    arguments=EndSilence,
    subject="silence",
    preview=preview,
    carry_out=carry_out,
)
