"""What the page of jobs reads: rows of django-celery-beat whose task runs actions, and what became of each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from mqadmin.audit.models import AuditEntry
from mqadmin.jobs import tasks
from mqadmin.people.caller import Way

# More jobs than one console has; beat reads all of them each time, too.
JOBS_MAX = 500


@dataclass(frozen=True, slots=True)
class Job:
    """A scheduled action. `next_at` is None while it is paused; `last` its newest entry in the audit."""

    name: str
    action: str
    cluster: str
    identity: str
    arguments: dict[str, Any]
    schedule: str
    is_running: bool
    next_at: datetime | None
    last_sent_at: datetime | None
    last: AuditEntry | None


def jobs() -> list[Job]:
    """Returns the jobs by name. Three queries."""
    return _with_last(_rows().order_by("name")[:JOBS_MAX])


def job(name: str) -> Job | None:
    """Returns one job; None where there is none of that name."""
    return next(iter(_with_last(_rows().filter(name=name))), None)


def _rows() -> Any:
    return PeriodicTask.objects.filter(task=tasks.NAME).select_related("crontab", "interval")


def _with_last(found: Iterable[Any]) -> list[Job]:
    rows = list(found)
    newest = (
        AuditEntry.objects.filter(way=Way.CELERY, via__in=[row.name for row in rows])
        .values("via")
        .annotate(number=Max("number"))
        .values_list("number", flat=True)
    )
    last = {entry.via: entry for entry in AuditEntry.objects.filter(number__in=list(newest))}
    return [_job(row, last.get(row.name)) for row in rows]


def find(name: str) -> Any:
    """Returns the row of a job; None where there is none of that name."""
    return PeriodicTask.objects.filter(task=tasks.NAME, name=name).first()


def _job(row: Any, last: AuditEntry | None) -> Job:
    kwargs = _object(row.kwargs)
    return Job(
        name=row.name,
        action=str(kwargs.get("action", "")),
        cluster=str(kwargs.get("cluster", "")),
        identity=str(kwargs.get("identity", "")),
        arguments=arguments if isinstance(arguments := kwargs.get("arguments"), dict) else {},
        schedule=schedule_text(row),
        is_running=row.enabled,
        next_at=next_at(row) if row.enabled else None,
        last_sent_at=row.last_run_at,
        last=last,
    )


def _object(text: str) -> dict[str, Any]:
    """Returns what a row is sent with; nothing where somebody else wrote what is no JSON object."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def schedule_text(row: Any) -> str:
    """Returns the schedule as it was written: five fields of a crontab, or an interval."""
    one = row.crontab
    if one is None:
        return str(row.schedule)
    return f"{one.minute} {one.hour} {one.day_of_month} {one.month_of_year} {one.day_of_week}"


def next_at(row: Any) -> datetime:
    """Returns when beat sends the job next."""
    since = row.last_run_at or row.date_changed or timezone.now()
    remaining: timedelta = row.schedule.remaining_estimate(since)
    # What is left was counted from a moment ago, and jobs begin at whole seconds.
    return (timezone.now() + max(remaining, timedelta())).replace(microsecond=0)
