"""Has the reports of some days made now. The job makes them one after the other; the page shows how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, Preview
from mqadmin.clusters.models import Cluster
from mqadmin.reports import runs, tasks
from mqadmin.reports.installed import missing_packages

# A longer back-fill is asked for in parts, or by `manage.py report`.
DAYS_MAX = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeReport:
    """From `day` on, so many days. Days are those of UTC."""

    day: Annotated[date, forms.DateField(label=gettext_lazy("Day"), help_text=gettext_lazy("In UTC, as 2026-11-22"))]
    days: Annotated[
        int,
        forms.IntegerField(label=gettext_lazy("Number of days"), min_value=1, max_value=DAYS_MAX, initial=1),
    ] = 1


def preview(cluster: Cluster, arguments: MakeReport) -> Preview[list[date]]:
    """Returns the days. Raises ValidationError for one in the future, ActionRefused without Spark."""
    missing = missing_packages()
    if missing:
        raise ActionRefused(
            _("Reports are not installed (%(packages)s): install requirements/reports.txt.")
            % {"packages": ", ".join(missing)}
        )
    last = arguments.day + timedelta(days=arguments.days - 1)
    if last > timezone.now().date():
        raise ValidationError({"day": _("A day in the future has no report.")})
    days = [arguments.day + timedelta(days=number) for number in range(arguments.days)]
    known = dict(cluster.day_reports.filter(day__in=days).values_list("day", "revision"))
    changes = tuple(
        Change(day.isoformat(), {"revision": known[day]} if day in known else {}, {"revision": None}) for day in days
    )
    return Preview(changes, days)


def carry_out(cluster: Cluster, _arguments: MakeReport, preview: Preview[list[date]]) -> Iterator[ItemOutcome]:
    """Puts the run behind those that wait, and wakes the worker."""
    runs.ask(cluster.name, preview.plan[0], preview.plan[-1], timezone.now())
    tasks.wake()
    yield from (change.done() for change in preview.changes)


DECLARATION: Action[MakeReport, list[date]] = Action(
    name="make_report",
    title=gettext_lazy("Make a report"),
    permission="mq_reports.add_reportrun",
    arguments=MakeReport,
    subject="day",
    preview=preview,
    carry_out=carry_out,
)
