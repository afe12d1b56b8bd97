"""Deletes a rule for alerts, with the alerts of it. What was told stays in the log of deliveries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview
from mqadmin.actions.switches import yes_no
from mqadmin.alerts import evaluating
from mqadmin.alerts.models import RULE_NAME_CHARS_MAX, Alert, AlertRule
from mqadmin.alerts.set_alert_rule import require_rule
from mqadmin.alerts.stepping import State


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAlertRule:
    rule: Annotated[str, forms.CharField(label=gettext_lazy("Rule"), max_length=RULE_NAME_CHARS_MAX)]


def preview(arguments: DeleteAlertRule) -> Preview[AlertRule]:
    rule = require_rule(arguments.rule)
    before = {"about": rule.about, "clusters": rule.clusters, "names": rule.names, "running": yes_no(rule.is_running)}
    warning = _("Its alerts go with it, those that fire and those that have resolved. To keep them, pause it.")
    return Preview((Change("", before, {}),), rule, (warning,))


def carry_out(_arguments: DeleteAlertRule, preview: Preview[AlertRule]) -> Iterator[ItemOutcome]:
    with transaction.atomic():
        firing = Alert.objects.filter(rule=preview.plan, state=State.FIRING).select_related("cluster").order_by("pk")
        evaluating.publish_deleted(list(firing), timezone.now())
        preview.plan.delete()
    yield preview.changes[0].done()


DECLARATION: InstallationAction[DeleteAlertRule, AlertRule] = InstallationAction(
    name="delete_alert_rule",
    title=gettext_lazy("Delete a rule for alerts"),
    permission="mq_alerts.delete_alertrule",
    arguments=DeleteAlertRule,
    subject="rule",
    preview=preview,
    carry_out=carry_out,
)
