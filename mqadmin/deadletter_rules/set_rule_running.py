"""Lets a rule run, or pauses it. It is about what dies from then on: what lay there before is left alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Action, Change, ItemOutcome, Preview, Undo
from mqadmin.actions.switches import undo_of_switch, yes_no
from mqadmin.clusters.models import Cluster
from mqadmin.deadletter_rules.deciding import Does
from mqadmin.deadletter_rules.make_rule import require_rule
from mqadmin.deadletter_rules.models import RULE_NAME_CHARS_MAX, DeadLetterRule, RaisedFailure, RuleTurn
from mqadmin.deadletters.models import DeadLetter
from mqadmin.people.words import YES_NO


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRuleRunning:
    rule: Annotated[str, forms.CharField(label=gettext_lazy("Rule"), max_length=RULE_NAME_CHARS_MAX)]
    running: Annotated[str, forms.ChoiceField(label=gettext_lazy("It runs"), choices=YES_NO)]


def preview(cluster: Cluster, arguments: SetRuleRunning) -> Preview[DeadLetterRule]:
    """Returns the change. Raises ValidationError for an unknown rule."""
    rule = require_rule(cluster, arguments.rule)
    change = Change("", {"running": yes_no(rule.is_running)}, {"running": arguments.running})
    warnings = []
    if arguments.running == "yes" and not rule.is_running:
        warnings.append(_("It is about what dies from now on; what is there already is left alone."))
        if rule.does == Does.REPLAY:
            words = _("It sends messages by itself, for %(person)s, who made it.")
            warnings.append(words % {"person": rule.acts_for})
    return Preview((change,), rule, tuple(warnings))


def carry_out(_cluster: Cluster, arguments: SetRuleRunning, preview: Preview[DeadLetterRule]) -> Iterator[ItemOutcome]:
    """Writes it. What a paused rule had decided and raised is dropped."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    rule = preview.plan
    with transaction.atomic():
        if arguments.running == "yes":
            newest = DeadLetter.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
            DeadLetterRule.objects.filter(pk=rule.pk).update(
                is_running=True, began_behind_id=newest, reached_id=newest, gaps=[], look_count=F("look_count") + 1
            )
        else:
            DeadLetterRule.objects.filter(pk=rule.pk).update(is_running=False)
            RuleTurn.objects.filter(rule=rule).delete()
            RaisedFailure.objects.filter(rule=rule).delete()
    yield change.done()


def undo(arguments: SetRuleRunning, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the opposite."""
    return undo_of_switch(DECLARATION.name, arguments, "running", outcomes)


def adapt(form: forms.Form, cluster: Cluster, subject: str) -> None:
    """Offers the opposite of what is."""
    rule = DeadLetterRule.objects.filter(cluster=cluster, name=subject).first()
    if rule is not None:
        form.fields["running"].initial = yes_no(not rule.is_running)


DECLARATION: Action[SetRuleRunning, DeadLetterRule] = Action(
    name="set_rule_running",
    title=gettext_lazy("Let a rule run, or pause it"),
    permission="mq_deadletter_rules.change_deadletterrule",
    arguments=SetRuleRunning,
    subject="rule",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
