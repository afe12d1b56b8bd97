"""Deletes a rule, with its counts. What it did stays in the audit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Action, Change, ItemOutcome, Preview
from mqadmin.actions.switches import yes_no
from mqadmin.clusters.models import Cluster
from mqadmin.deadletter_rules.make_rule import require_rule
from mqadmin.deadletter_rules.models import RULE_NAME_CHARS_MAX, DeadLetterRule


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRule:
    rule: Annotated[str, forms.CharField(label=gettext_lazy("Rule"), max_length=RULE_NAME_CHARS_MAX)]


def preview(cluster: Cluster, arguments: DeleteRule) -> Preview[DeadLetterRule]:
    """Returns what is there. Raises ValidationError for an unknown rule."""
    rule = require_rule(cluster, arguments.rule)
    before = {"does": rule.does, "group": rule.group_name, "running": yes_no(rule.is_running)}
    return Preview((Change("", before, {}),), rule)


def carry_out(_cluster: Cluster, _arguments: DeleteRule, preview: Preview[DeadLetterRule]) -> Iterator[ItemOutcome]:
    preview.plan.delete()
    yield preview.changes[0].done()


DECLARATION: Action[DeleteRule, DeadLetterRule] = Action(
    name="delete_rule",
    title=gettext_lazy("Delete a rule for dead letters"),
    permission="mq_deadletter_rules.delete_deadletterrule",
    arguments=DeleteRule,
    subject="rule",
    preview=preview,
    carry_out=carry_out,
)
