"""Makes a rule. It does not run before somebody says so, and acts for whoever made it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import CountField, IdField
from mqadmin.actions.declaration import Action, Change, ItemOutcome, ItemState, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.deadletter_rules.deciding import HOURS_OF_DAY, Does
from mqadmin.deadletter_rules.models import RULE_NAME_CHARS_MAX, DeadLetterRule
from mqadmin.deadletters.models import FAILURE_CLASS_CHARS_MAX, FAILURE_TEXT_CHARS_MAX
from mqadmin.deadletters.subjects import failure_words, require_failure
from mqadmin.groups.rules import GroupField
from mqadmin.people.current_caller import current_caller

# Rules of one cluster: each looks at every dead letter that is new.
RULES_MAX = 100
AFTER_MINUTES_MAX = 7 * 24 * 60
TIMES_MAX = 100
RATE_MAX = 10_000

_Pattern = {"help_text": gettext_lazy("* stands for any part; empty: any.")}


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeRule:
    """About one failure by its number, or about all of the group whose class and text match the patterns."""

    rule: Annotated[
        str,
        forms.RegexField(
            r"^[\w .:-]+\Z",
            label=gettext_lazy("Name"),
            max_length=RULE_NAME_CHARS_MAX,
            help_text=gettext_lazy("Letters, digits, blanks and . : - _"),
        ),
    ]
    group: Annotated[str, GroupField(label=gettext_lazy("Group"))]
    does: Annotated[
        str, forms.ChoiceField(label=gettext_lazy("What it does"), choices=Does.choices, widget=forms.RadioSelect)
    ]
    failure: Annotated[
        int | None, IdField(label=gettext_lazy("Failure"), help_text=gettext_lazy("Those of this failure alone."))
    ] = None
    failure_class: Annotated[
        str, forms.CharField(label=gettext_lazy("Exception class"), max_length=FAILURE_CLASS_CHARS_MAX, **_Pattern)
    ] = ""
    failure_text: Annotated[
        str, forms.CharField(label=gettext_lazy("Text of the exception"), max_length=FAILURE_TEXT_CHARS_MAX, **_Pattern)
    ] = ""
    after_minutes: Annotated[
        int, CountField(label=gettext_lazy("Minutes after they died"), max_value=AFTER_MINUTES_MAX)
    ] = 10
    times: Annotated[
        int,
        CountField(
            label=gettext_lazy("Times a message at most"),
            min_value=1,
            max_value=TIMES_MAX,
            help_text=gettext_lazy("Of a rule that replays: one that dies again is replayed again, until then."),
        ),
    ] = 1
    rate: Annotated[int, CountField(label=gettext_lazy("Messages a second"), min_value=1, max_value=RATE_MAX)] = 10
    from_hour: Annotated[
        int, CountField(label=gettext_lazy("From this hour of the day"), max_value=HOURS_OF_DAY - 1)
    ] = 0
    to_hour: Annotated[
        int,
        CountField(
            label=gettext_lazy("To this hour"),
            max_value=HOURS_OF_DAY - 1,
            help_text=gettext_lazy("In the time zone of this installation; the same hour twice: all day."),
        ),
    ] = 0


@dataclass(frozen=True, slots=True)
class RulePlan:
    """`identity` is that of the failure, "" where none is named."""

    identity: str


def preview(cluster: Cluster, arguments: MakeRule) -> Preview[RulePlan]:
    """Returns the rule. Raises ValidationError, ActionRefused for a failure that is not there."""
    rules = DeadLetterRule.objects.filter(cluster=cluster)
    if rules.filter(name=arguments.rule).exists():
        raise ValidationError({"rule": _("There is a rule of this name already.")})
    if rules.count() >= RULES_MAX:
        words = _("A cluster may have %(most)d rules: delete one that is not needed.")
        raise ValidationError({"rule": words % {"most": RULES_MAX}})
    identity, what = "", ""
    if arguments.failure is not None:
        failure = require_failure(cluster, arguments.failure)
        if failure.group_name != arguments.group:
            words = _("That is a failure of %(group)s.")
            raise ValidationError({"failure": words % {"group": failure.group_name}})
        identity, what = failure.identity, failure_words(failure)
    after = {
        "does": arguments.does,
        "group": arguments.group,
        "failure": what or f"{arguments.failure_class or '*'}: {arguments.failure_text or '*'}",
        "acts_for": current_caller().name,
        "running": "no",
    }
    return Preview((Change("", {}, after),), RulePlan(identity))


def carry_out(cluster: Cluster, arguments: MakeRule, preview: Preview[RulePlan]) -> Iterator[ItemOutcome]:
    """Writes the row, paused."""
    (change,) = preview.changes
    try:
        with transaction.atomic():
            DeadLetterRule.objects.create(
                cluster=cluster,
                name=arguments.rule,
                group_name=arguments.group,
                does=arguments.does,
                identity=preview.plan.identity,
                class_pattern=arguments.failure_class,
                text_pattern=arguments.failure_text,
                after_minutes=arguments.after_minutes,
                times_max=arguments.times,
                rate_per_s=arguments.rate,
                from_hour=arguments.from_hour,
                to_hour=arguments.to_hour,
                acts_for=current_caller().name,
                made_at=timezone.now(),
            )
    except IntegrityError:
        yield change.failed(_("There is a rule of this name already."))
        return
    yield change.done()


def undo(arguments: MakeRule, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the rule's deletion."""
    return Undo("delete_rule", {"rule": arguments.rule}) if outcomes[0].state == ItemState.DONE else None


def adapt(form: forms.Form, _cluster: Cluster, _subject: str) -> None:
    """Offers the least that a rule can do."""
    form.fields["does"].initial = Does.RAISE


def require_rule(cluster: Cluster, name: str) -> DeadLetterRule:
    """Raises ValidationError for the argument `rule`."""
    found = DeadLetterRule.objects.select_related("cluster").filter(cluster=cluster, name=name).first()
    if found is None:
        raise ValidationError({"rule": _("There is no rule of this name.")})
    return found


DECLARATION: Action[MakeRule, RulePlan] = Action(
    name="make_rule",
    title=gettext_lazy("Make a rule for dead letters"),
    permission="mq_deadletter_rules.add_deadletterrule",
    arguments=MakeRule,
    subject="rule",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
