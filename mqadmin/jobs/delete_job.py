"""Deletes a job. What it did stays in the audit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview
from mqadmin.jobs import selectors
from mqadmin.jobs.make_job import NAME_CHARS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteJob:
    """The job."""

    job: Annotated[str, forms.CharField(label=gettext_lazy("Job"), max_length=NAME_CHARS_MAX)]


def preview(arguments: DeleteJob) -> Preview[Any]:
    """Returns what is there. Raises ValidationError for an unknown job."""
    row = selectors.find(arguments.job)
    if row is None:
        raise ValidationError({"job": _("There is no job of this name.")})
    return Preview((Change("", {"schedule": selectors.schedule_text(row), "kwargs": row.kwargs}, {}),), row)


def carry_out(_arguments: DeleteJob, preview: Preview[Any]) -> Iterator[ItemOutcome]:
    """Deletes the row; beat sends it no more."""
    preview.plan.delete()
    yield preview.changes[0].done()


DECLARATION: InstallationAction[DeleteJob, Any] = InstallationAction(
    name="delete_job",
    title=gettext_lazy("Delete a job"),
    permission="django_celery_beat.delete_periodictask",
    arguments=DeleteJob,
    subject="job",
    preview=preview,
    carry_out=carry_out,
)
