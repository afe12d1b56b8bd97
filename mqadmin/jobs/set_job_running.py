"""Pauses a job, or lets it go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview, Undo
from mqadmin.actions.switches import undo_of_switch, yes_no
from mqadmin.jobs import selectors
from mqadmin.jobs.make_job import NAME_CHARS_MAX
from mqadmin.people.words import YES_NO


@dataclass(frozen=True, slots=True, kw_only=True)
class SetJobRunning:
    """Whether beat sends the job at its times."""

    job: Annotated[str, forms.CharField(label=gettext_lazy("Job"), max_length=NAME_CHARS_MAX)]
    running: Annotated[str, forms.ChoiceField(label=gettext_lazy("Runs at its times"), choices=YES_NO)]


def preview(arguments: SetJobRunning) -> Preview[Any]:
    """Returns the change. Raises ValidationError for an unknown job."""
    row = selectors.find(arguments.job)
    if row is None:
        raise ValidationError({"job": _("There is no job of this name.")})
    return Preview((Change("", {"running": yes_no(row.enabled)}, {"running": arguments.running}),), row)


def carry_out(arguments: SetJobRunning, preview: Preview[Any]) -> Iterator[ItemOutcome]:
    """Writes it into the row, which beat reads within seconds."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    preview.plan.enabled = arguments.running == "yes"
    preview.plan.save()
    yield change.done()


def undo(arguments: SetJobRunning, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the opposite."""
    return undo_of_switch(DECLARATION.name, arguments, "running", outcomes)


def adapt(form: forms.Form, subject: str) -> None:
    """Offers the opposite of what is."""
    row = selectors.find(subject) if subject else None
    if row is not None:
        form.fields["running"].initial = yes_no(not row.enabled)


DECLARATION: InstallationAction[SetJobRunning, Any] = InstallationAction(
    name="set_job_running",
    title=gettext_lazy("Pause a job, or let it go on"),
    permission="django_celery_beat.change_periodictask",
    arguments=SetJobRunning,
    subject="job",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
