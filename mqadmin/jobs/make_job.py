"""Makes a job: an action that beat sends at its times, under an identity."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django import forms
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from mqadmin.actions import registry
from mqadmin.actions.arguments import InvalidArguments, has_secrets, read_arguments
from mqadmin.actions.declaration import Action, Change, InstallationAction, ItemOutcome, ItemState, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.jobs import tasks
from mqadmin.people import access

NAME_CHARS_MAX = 100
ARGUMENTS_CHARS_MAX = 10_000
CRONTAB_FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeJob:
    """The job: which action on which cluster ("" for the console itself) when, for whom, and with what arguments."""

    job: Annotated[str, forms.CharField(label=gettext_lazy("Name"), max_length=NAME_CHARS_MAX)]
    action: Annotated[str, forms.ChoiceField(label=gettext_lazy("Action"))]
    schedule: Annotated[
        str,
        forms.CharField(
            label=gettext_lazy("When"),
            max_length=200,
            help_text=gettext_lazy("Minute, hour, day, month, weekday in UTC, as in a crontab: 0 3 * * 1-5"),
        ),
    ]
    identity: Annotated[
        str,
        forms.CharField(
            label=gettext_lazy("Acts for"),
            max_length=150,
            help_text=gettext_lazy("An account; the job may what its roles allow when it runs."),
        ),
    ]
    cluster: Annotated[str, forms.ChoiceField(label=gettext_lazy("Cluster"))] = ""
    arguments: Annotated[
        str,
        forms.CharField(
            label=gettext_lazy("Arguments"),
            max_length=ARGUMENTS_CHARS_MAX,
            widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
            help_text=gettext_lazy('As JSON: {"topic": "orders"}'),
        ),
    ] = "{}"


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What the row will hold."""

    crontab: dict[str, str]
    kwargs: dict[str, Any]


def preview(arguments: MakeJob) -> Preview[JobPlan]:
    """Checks everything as a run would. Raises ValidationError naming the argument."""
    if PeriodicTask.objects.filter(name=arguments.job).exists():
        raise ValidationError({"job": _("There is a job of this name already.")})
    crontab = read_crontab(arguments.schedule)
    action = registry.find(arguments.action)
    if has_secrets(action):
        raise ValidationError({"action": _("It takes a secret, which a job would keep in plain text.")})
    if isinstance(action, Action) != bool(arguments.cluster):
        raise ValidationError({"cluster": _("Choose the cluster, or none for an action about this console.")})
    cluster = Cluster.objects.get(name=arguments.cluster) if arguments.cluster else None
    values = _values(arguments.arguments)
    try:
        read_arguments(action, cluster, values)
    except InvalidArguments as error:
        raise ValidationError({"arguments": str(error)}) from error
    account = get_user_model()._default_manager.filter(username=arguments.identity).first()
    if account is None:
        raise ValidationError({"identity": _("Nobody has this name.")})
    warnings = []
    if not access.may(account, action.permission, cluster):
        words = _("%(identity)s may not do this now: the job is refused until they may.")
        warnings.append(words % {"identity": arguments.identity})
    if action.is_confirmed_by_name:
        warnings.append(_("Nothing takes it back, and nobody is asked again when it runs."))
    kwargs = {
        "action": action.name,
        "cluster": arguments.cluster,
        "arguments": values,
        "identity": arguments.identity,
        "job": arguments.job,
        "confirmation": str(values.get(action.subject, "")),
    }
    after = {"action": str(action.name), "schedule": arguments.schedule, "identity": arguments.identity}
    return Preview((Change("", {}, after),), JobPlan(crontab, kwargs), tuple(warnings))


def carry_out(arguments: MakeJob, preview: Preview[JobPlan]) -> Iterator[ItemOutcome]:
    """Writes the row, which beat reads within seconds."""
    with transaction.atomic():
        crontab = CrontabSchedule.objects.filter(**preview.plan.crontab, timezone="UTC").first()
        if crontab is None:
            crontab = CrontabSchedule.objects.create(**preview.plan.crontab, timezone="UTC")
        PeriodicTask.objects.create(
            name=arguments.job, task=tasks.NAME, queue="jobs", crontab=crontab, kwargs=json.dumps(preview.plan.kwargs)
        )
    yield preview.changes[0].done()


def undo(arguments: MakeJob, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the job's deletion."""
    return Undo("delete_job", {"job": arguments.job}) if outcomes[0].state == ItemState.DONE else None


def adapt(form: forms.Form, _subject: str) -> None:
    """Offers the actions and the clusters."""
    form.fields["action"].choices = [  # type: ignore[attr-defined]
        (name, one.title) for name, one in sorted(registry.ACTIONS.items())
    ]
    names = Cluster.objects.order_by("name").values_list("name", flat=True)
    form.fields["cluster"].choices = [  # type: ignore[attr-defined]
        ("", _("none: this console")),
        *((name, name) for name in names),
    ]


def read_crontab(text: str) -> dict[str, str]:
    """Returns the five fields by name. Raises ValidationError for the argument `schedule`."""
    words = text.split()
    if len(words) != len(CRONTAB_FIELDS):
        raise ValidationError({"schedule": _("Five fields are needed: minute, hour, day, month, weekday.")})
    fields = dict(zip(CRONTAB_FIELDS, words, strict=True))
    try:
        CrontabSchedule(**fields, timezone="UTC").clean_fields()
    except ValidationError as error:
        raise ValidationError({"schedule": error.messages}) from error
    return fields


def _values(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise ValidationError({"arguments": _("This is not JSON: %(error)s") % {"error": error}}) from error
    if not isinstance(values, dict):
        raise ValidationError({"arguments": _('It must be an object: {"topic": "orders"}')})
    return values


DECLARATION: InstallationAction[MakeJob, JobPlan] = InstallationAction(
    name="make_job",
    title=gettext_lazy("Make a job"),
    permission="django_celery_beat.add_periodictask",
    arguments=MakeJob,
    subject="job",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
