"""Makes a rule for alerts, or changes one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import CountField
from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, ItemState, Preview, Undo
from mqadmin.alerts.conditions import WATCHED, About, Subject
from mqadmin.alerts.fields import NameField, PatternField
from mqadmin.alerts.models import RULE_NAME_CHARS_MAX, AlertChannel, AlertRule
from mqadmin.alerts.sentences import VERDICT_WORDS, verdict_word
from mqadmin.clusters.cluster_verdict import FINDINGS, ClusterVerdict
from mqadmin.clusters.models import Verdict
from mqadmin.people.current_caller import current_caller

# Each is held against all groups at every look.
RULES_MAX = 100
DURATION_S_MAX = 24 * 3600
ESCALATE_MINUTES_MAX = 7 * 24 * 60
WINDOWS = ((5, "5"), (15, "15"), (60, "60"), (1440, "1440"))
# What a rule on the verdict of each may watch, and what it watches where none is chosen.
VERDICTS: Mapping[Subject, tuple[str, ...]] = {
    Subject.GROUP: (
        Verdict.STALLED,
        Verdict.STOPPED,
        Verdict.FAILING,
        Verdict.SLOW,
        Verdict.REWOUND,
        Verdict.BUSY,
        Verdict.UNKNOWN,
    ),
    Subject.CLUSTER: (*FINDINGS, ClusterVerdict.UNKNOWN),
}
WORST: Mapping[Subject, tuple[str, ...]] = {
    Subject.GROUP: (Verdict.STALLED, Verdict.STOPPED),
    Subject.CLUSTER: (
        ClusterVerdict.UNREACHABLE,
        ClusterVerdict.STALLED,
        ClusterVerdict.PARTIAL,
        ClusterVerdict.NOT_RUNNING,
        ClusterVerdict.STOPPED,
    ),
}
CHOICES = (
    *(
        (one.value, VERDICT_WORDS[one])
        for one in (Verdict.STALLED, Verdict.STOPPED, Verdict.FAILING, Verdict.SLOW, Verdict.UNKNOWN)
    ),
    (Verdict.REWOUND.value, gettext_lazy("REWOUND (of a group)")),
    (Verdict.BUSY.value, gettext_lazy("BUSY (of a group)")),
    (ClusterVerdict.UNREACHABLE.value, gettext_lazy("UNREACHABLE (of a cluster)")),
    (ClusterVerdict.PARTIAL.value, gettext_lazy("PARTIAL: a broker is away (of a cluster)")),
    (ClusterVerdict.NOT_RUNNING.value, gettext_lazy("NOT RUNNING: no worker runs a scheduler (of a cluster)")),
)

_ABOUT_VERDICTS = frozenset({About.VERDICT, About.CLUSTER_VERDICT})
_ALWAYS_SHOWN = frozenset({"for_s", "resolve_s", "channels"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAlertRule:
    rule: Annotated[str, NameField(label=gettext_lazy("Name"), max_length=RULE_NAME_CHARS_MAX)]
    about: Annotated[str, forms.ChoiceField(label=gettext_lazy("What it watches"), choices=About)]
    clusters: Annotated[str, PatternField(label=gettext_lazy("Clusters"))] = "*"
    names: Annotated[str, PatternField(label=gettext_lazy("Groups or brokers"))] = "*"
    verdicts: Annotated[
        tuple[str, ...],
        forms.MultipleChoiceField(
            label=gettext_lazy("Verdicts"),
            choices=CHOICES,
            widget=forms.CheckboxSelectMultiple,
            help_text=gettext_lazy(
                "Where it watches a verdict. None chosen: of a group STALLED and STOPPED; of a cluster UNREACHABLE, "
                "STALLED, PARTIAL, NOT RUNNING and STOPPED."
            ),
        ),
    ] = ()
    threshold: Annotated[
        int,
        CountField(
            label=gettext_lazy("From how much on"),
            help_text=gettext_lazy("In messages, seconds, minutes or percent, as what it watches is counted."),
        ),
    ] = 0
    window_minutes: Annotated[
        int,
        forms.TypedChoiceField(
            label=gettext_lazy("Dead letters within how many minutes"), choices=WINDOWS, coerce=int, empty_value=15
        ),
    ] = 15
    for_s: Annotated[
        int,
        CountField(label=gettext_lazy("Fires when that has held for so many seconds"), max_value=DURATION_S_MAX),
    ] = 0
    resolve_s: Annotated[
        int,
        CountField(label=gettext_lazy("Resolves when it has not for so many seconds"), max_value=DURATION_S_MAX),
    ] = 60
    channels: Annotated[
        tuple[str, ...],
        forms.MultipleChoiceField(
            label=gettext_lazy("Who is told"),
            widget=forms.CheckboxSelectMultiple,
            help_text=gettext_lazy("None chosen: it is shown here alone."),
        ),
    ] = ()
    escalate_minutes: Annotated[
        int,
        CountField(
            label=gettext_lazy("Minutes without acknowledgement after which others are told"),
            max_value=ESCALATE_MINUTES_MAX,
            help_text=gettext_lazy("0: never."),
        ),
    ] = 0
    escalation_channels: Annotated[
        tuple[str, ...],
        forms.MultipleChoiceField(label=gettext_lazy("Which others"), widget=forms.CheckboxSelectMultiple),
    ] = ()


def preview(arguments: SetAlertRule) -> Preview[AlertRule | None]:
    """Returns the rule as it is and as it will be. Raises ValidationError by argument."""
    present = find_rule(arguments.rule)
    if present is None and AlertRule.objects.count() >= RULES_MAX:
        words = _("There are %(most)d rules already: delete one that is not needed.")
        raise ValidationError({"rule": words % {"most": RULES_MAX}})
    about = About(arguments.about)
    if WATCHED[about].has_threshold and not arguments.threshold:
        raise ValidationError({"threshold": _("Say from how much on.")})
    if about == About.DISK and arguments.threshold > 100:
        raise ValidationError({"threshold": _("A disk is full at 100 percent.")})
    _require_verdicts_of(about, arguments.verdicts)
    if arguments.escalate_minutes and not arguments.escalation_channels:
        raise ValidationError({"escalation_channels": _("Say who is told then.")})
    if arguments.escalate_minutes and not arguments.channels:
        raise ValidationError({"channels": _("Say who is told first.")})
    warnings = [] if arguments.channels else [_("Nobody is told; its alerts are shown on the pages alone.")]
    return Preview((Change("", _values(present), _shown(_after(arguments))),), present, tuple(warnings))


def _require_verdicts_of(about: About, verdicts: Sequence[str]) -> None:
    """Raises ValidationError where the rule could never hold: no group is PARTIAL."""
    subject = WATCHED[about].subject
    others = [one for one in verdicts if about in _ABOUT_VERDICTS and one not in VERDICTS[subject]]
    if others:
        words = _("No cluster is %(verdict)s.") if subject == Subject.CLUSTER else _("No group is %(verdict)s.")
        raise ValidationError({"verdicts": [words % {"verdict": verdict_word(one)} for one in others]})


def carry_out(arguments: SetAlertRule, preview: Preview[AlertRule | None]) -> Iterator[ItemOutcome]:
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    after = dict(_after(arguments))
    names = {"channels": after.pop("channels"), "escalation_channels": after.pop("escalation_channels")}
    with transaction.atomic():
        row, _is_new = AlertRule.objects.update_or_create(
            name=arguments.rule,
            defaults=after,
            create_defaults={**after, "made_by": current_caller().name, "made_at": timezone.now()},
        )
        row.channels.set(AlertChannel.objects.filter(name__in=names["channels"]))
        row.escalation_channels.set(AlertChannel.objects.filter(name__in=names["escalation_channels"]))
    yield change.done()


def undo(arguments: SetAlertRule, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the rule's deletion, or the same with what it was before."""
    (outcome,) = outcomes
    if outcome.state != ItemState.DONE or outcome.before is None:
        return None
    if not outcome.before:
        return Undo("delete_alert_rule", {"rule": arguments.rule})
    return Undo(DECLARATION.name, {"rule": arguments.rule, **outcome.before})


def adapt(form: forms.Form, subject: str) -> None:
    """Offers the channels that there are, and starts at the present values."""
    channels = [(name, name) for name in AlertChannel.objects.order_by("name").values_list("name", flat=True)]
    form.fields["channels"].choices = channels  # type: ignore[attr-defined]
    form.fields["escalation_channels"].choices = channels  # type: ignore[attr-defined]
    for name, value in _values(find_rule(subject)).items():
        form.fields[name].initial = value


def find_rule(name: str) -> AlertRule | None:
    rows = AlertRule.objects.prefetch_related("channels", "escalation_channels")
    return rows.filter(name=name).first() if name else None


def require_rule(name: str) -> AlertRule:
    """Raises ValidationError for the argument `rule`."""
    if (found := find_rule(name)) is None:
        raise ValidationError({"rule": _("There is no rule of this name.")})
    return found


def _after(arguments: SetAlertRule) -> dict[str, Any]:
    about = About(arguments.about)
    return {
        "about": arguments.about,
        "clusters": arguments.clusters,
        "names": arguments.names,
        "verdicts": sorted(arguments.verdicts or WORST[WATCHED[about].subject]) if about in _ABOUT_VERDICTS else [],
        "threshold": arguments.threshold if WATCHED[about].has_threshold else 0,
        "window_minutes": arguments.window_minutes if about == About.DEAD_LETTERS else 0,
        "for_s": arguments.for_s,
        "resolve_s": arguments.resolve_s,
        "escalate_minutes": arguments.escalate_minutes,
        "channels": sorted(arguments.channels),
        "escalation_channels": sorted(arguments.escalation_channels),
    }


def _values(row: AlertRule | None) -> dict[str, Any]:
    if row is None:
        return {}
    values = {
        "about": row.about,
        "clusters": row.clusters,
        "names": row.names,
        "verdicts": sorted(row.verdicts),
        "threshold": row.threshold,
        "window_minutes": row.window_minutes,
        "for_s": row.for_s,
        "resolve_s": row.resolve_s,
        "escalate_minutes": row.escalate_minutes,
        "channels": sorted(one.name for one in row.channels.all()),
        "escalation_channels": sorted(one.name for one in row.escalation_channels.all()),
    }
    return _shown(values)


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    """Leaves out what says nothing: the verdicts of a rule on lag, the others of one that is not escalated."""
    return {name: value for name, value in values.items() if value or name in _ALWAYS_SHOWN}


DECLARATION: InstallationAction[SetAlertRule, AlertRule | None] = InstallationAction(
    name="set_alert_rule",
    title=gettext_lazy("Set a rule for alerts"),
    permission="mq_alerts.change_alertrule",
    arguments=SetAlertRule,
    subject="rule",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
