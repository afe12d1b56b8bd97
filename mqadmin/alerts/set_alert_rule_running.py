"""Lets a rule for alerts run, or pauses it: what fires of a paused rule resolves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview, Undo
from mqadmin.actions.switches import undo_of_switch, yes_no
from mqadmin.alerts.models import RULE_NAME_CHARS_MAX, AlertRule
from mqadmin.alerts.set_alert_rule import find_rule, require_rule
from mqadmin.people.words import YES_NO


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAlertRuleRunning:
    rule: Annotated[str, forms.CharField(label=gettext_lazy("Rule"), max_length=RULE_NAME_CHARS_MAX)]
    running: Annotated[str, forms.ChoiceField(label=gettext_lazy("It runs"), choices=YES_NO)]


def preview(arguments: SetAlertRuleRunning) -> Preview[AlertRule]:
    rule = require_rule(arguments.rule)
    return Preview((Change("", {"running": yes_no(rule.is_running)}, {"running": arguments.running}),), rule)


def carry_out(arguments: SetAlertRuleRunning, preview: Preview[AlertRule]) -> Iterator[ItemOutcome]:
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    AlertRule.objects.filter(pk=preview.plan.pk).update(is_running=arguments.running == "yes")
    yield change.done()


def undo(arguments: SetAlertRuleRunning, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    return undo_of_switch(DECLARATION.name, arguments, "running", outcomes)


def adapt(form: forms.Form, subject: str) -> None:
    """Offers the opposite of what is."""
    if (rule := find_rule(subject)) is not None:
        form.fields["running"].initial = yes_no(not rule.is_running)


DECLARATION: InstallationAction[SetAlertRuleRunning, AlertRule] = InstallationAction(
    name="set_alert_rule_running",
    title=gettext_lazy("Let a rule for alerts run, or pause it"),
    permission="mq_alerts.change_alertrule",
    arguments=SetAlertRuleRunning,
    subject="rule",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
