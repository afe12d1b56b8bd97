"""Acknowledges an alert: somebody looks after it, so nobody else is told; or takes that back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import IdField
from mqadmin.actions.declaration import Action, Change, ItemOutcome, Preview, Undo
from mqadmin.actions.switches import undo_of_switch, yes_no
from mqadmin.alerts import evaluating
from mqadmin.alerts.models import NOTE_CHARS_MAX, Alert
from mqadmin.alerts.stepping import State
from mqadmin.clusters.models import Cluster
from mqadmin.people.current_caller import current_caller
from mqadmin.people.words import YES_NO


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeAlert:
    alert: Annotated[int, IdField(label=gettext_lazy("Alert"))]
    acknowledged: Annotated[str, forms.ChoiceField(label=gettext_lazy("Somebody looks after it"), choices=YES_NO)] = (
        "yes"
    )
    note: Annotated[str, forms.CharField(label=gettext_lazy("Note"), max_length=NOTE_CHARS_MAX)] = ""


def preview(cluster: Cluster, arguments: AcknowledgeAlert) -> Preview[Alert]:
    """Returns the change. Raises ValidationError for an alert that is not there, or has resolved."""
    alert = Alert.objects.select_related("rule", "cluster").filter(cluster=cluster, pk=arguments.alert).first()
    if alert is None:
        raise ValidationError({"alert": _("There is no such alert.")})
    if alert.state != State.FIRING:
        raise ValidationError({"alert": _("It does not fire any more.")})
    before = {"acknowledged": yes_no(alert.acknowledged_at is not None), "note": alert.acknowledged_note}
    after = {"acknowledged": arguments.acknowledged, "note": arguments.note if arguments.acknowledged == "yes" else ""}
    return Preview((Change("", before, after, note=f"{alert.rule.name}: {alert.name or cluster.name}"),), alert)


def carry_out(_cluster: Cluster, arguments: AcknowledgeAlert, preview: Preview[Alert]) -> Iterator[ItemOutcome]:
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    is_so, now, by = arguments.acknowledged == "yes", timezone.now(), current_caller().name
    with transaction.atomic():
        Alert.objects.filter(pk=preview.plan.pk).update(
            acknowledged_at=now if is_so else None,
            acknowledged_by=by if is_so else "",
            acknowledged_note=arguments.note if is_so else "",
        )
        evaluating.publish_acknowledged(preview.plan, is_so=is_so, by=by, now=now)
    yield change.done()


def undo(arguments: AcknowledgeAlert, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    return undo_of_switch(DECLARATION.name, arguments, "acknowledged", outcomes)


DECLARATION: Action[AcknowledgeAlert, Alert] = Action(
    name="acknowledge_alert",
    title=gettext_lazy("Acknowledge an alert"),
    permission="mq_alerts.change_alert",
    arguments=AcknowledgeAlert,
    subject="alert",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
)
