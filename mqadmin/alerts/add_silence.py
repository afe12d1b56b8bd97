"""Adds a silence: a time in which nobody is told of alerts of a cluster, once or every week."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import CountField
from mqadmin.actions.declaration import Action, Change, ItemOutcome, ItemState, Preview, Undo
from mqadmin.alerts.fields import WEEKDAYS, ClockField, NameField, PatternField, ZoneField, minutes_of
from mqadmin.alerts.models import NOTE_CHARS_MAX, SILENCE_NAME_CHARS_MAX, AlertSilence
from mqadmin.clusters.models import Cluster
from mqadmin.people.current_caller import current_caller

# Of one cluster: each is held against all that fires.
SILENCES_MAX = 200
MINUTES_MAX = 90 * 24 * 60
_DAYS = [key for key, _word in WEEKDAYS]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddSilence:
    silence: Annotated[str, NameField(label=gettext_lazy("Name"), max_length=SILENCE_NAME_CHARS_MAX)]
    names: Annotated[str, PatternField(label=gettext_lazy("Groups or brokers"))] = "*"
    rules: Annotated[str, PatternField(label=gettext_lazy("Rules"))] = "*"
    minutes: Annotated[
        int,
        CountField(
            label=gettext_lazy("For so many minutes from now on"),
            max_value=MINUTES_MAX,
            help_text=gettext_lazy("Once. Of a weekly one: for how long there is one; 0: until somebody ends it."),
        ),
    ] = 60
    weekdays: Annotated[
        tuple[str, ...],
        forms.MultipleChoiceField(
            label=gettext_lazy("Every week, on"),
            choices=WEEKDAYS,
            widget=forms.CheckboxSelectMultiple,
            help_text=gettext_lazy("None chosen: once, from now on."),
        ),
    ] = ()
    from_time: Annotated[str, ClockField(label=gettext_lazy("From this time of the day"))] = "00:00"
    to_time: Annotated[
        str,
        ClockField(
            label=gettext_lazy("To this time"),
            help_text=gettext_lazy("Not after the begin: on the next day."),
        ),
    ] = "00:00"
    zone: Annotated[
        str,
        ZoneField(label=gettext_lazy("By the clock of"), help_text=gettext_lazy("A time zone, such as Asia/Shanghai.")),
    ] = "UTC"
    note: Annotated[str, forms.CharField(label=gettext_lazy("Note"), max_length=NOTE_CHARS_MAX)] = ""


def preview(cluster: Cluster, arguments: AddSilence) -> Preview[None]:
    """Returns the silence. Raises ValidationError by argument."""
    present = AlertSilence.objects.filter(cluster=cluster)
    if present.filter(name=arguments.silence).exists():
        raise ValidationError({"silence": _("There is a silence of this name already.")})
    if present.count() >= SILENCES_MAX:
        words = _("A cluster may have %(most)d silences: end one that is not needed.")
        raise ValidationError({"silence": words % {"most": SILENCES_MAX}})
    if not arguments.weekdays and not arguments.minutes:
        raise ValidationError({"minutes": _("Say for how long.")})
    after: dict[str, Any] = {"names": arguments.names, "rules": arguments.rules, "minutes": arguments.minutes}
    if arguments.weekdays:
        after |= {
            "weekdays": sorted(arguments.weekdays, key=_DAYS.index),
            "from_time": arguments.from_time,
            "to_time": arguments.to_time,
            "zone": arguments.zone,
        }
    if arguments.note:
        after["note"] = arguments.note
    return Preview((Change("", {}, after),), None)


def carry_out(cluster: Cluster, arguments: AddSilence, preview: Preview[None]) -> Iterator[ItemOutcome]:
    (change,) = preview.changes
    now = timezone.now()
    try:
        with transaction.atomic():
            AlertSilence.objects.create(
                cluster=cluster,
                name=arguments.silence,
                names=arguments.names,
                rules=arguments.rules,
                starts_at=now,
                ends_at=_ends_at(arguments, now),
                weekdays=sorted(_DAYS.index(one) for one in arguments.weekdays),
                from_minute=minutes_of(arguments.from_time),
                to_minute=minutes_of(arguments.to_time),
                zone=arguments.zone,
                note=arguments.note,
                made_by=current_caller().name,
            )
    except IntegrityError:
        yield change.failed(_("There is a silence of this name already."))
        return
    yield change.done()


def _ends_at(arguments: AddSilence, now: datetime) -> datetime | None:
    return now.astimezone(UTC) + timedelta(minutes=arguments.minutes) if arguments.minutes else None


def undo(arguments: AddSilence, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    is_done = outcomes[0].state == ItemState.DONE
    return Undo("end_silence", {"silence": arguments.silence}) if is_done else None


DECLARATION: Action[AddSilence, None] = Action(
    name="add_silence",
    title=gettext_lazy("Silence alerts"),
    permission="mq_alerts.add_alertsilence",
    arguments=AddSilence,
    subject="silence",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
)
