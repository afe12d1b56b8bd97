"""Runs of the job, from asked for to ended: one at a time, by conditional updates alone, so of two that race one wins.

A run that has said nothing for ABANDONED_AFTER is ended as failed: its process was killed. What it had finished stays,
and nothing else is there of it.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from mqadmin.clusters.models import Cluster
from mqadmin.reports.models import PROBLEM_CHARS_MAX, ReportRun, RunState
from mqadmin.reports.signals import RunChanged, run_changed

# A run writes how far it is every few seconds; SQLite's one writer can starve for 6 s.
ABANDONED_AFTER = timedelta(seconds=90)
# The night's report is made from this hour on (UTC), so that the last hour of the day before is in the history.
NIGHT_HOUR = 1
# A night whose run failed, as one that a stop of `up` cut short, is tried again so often; then it waits for a person.
NIGHT_TRIES_MAX = 3
# So many of the latest runs are kept.
RUNS_KEPT = 200


def ask(
    cluster: str, since: date, until: date, now: datetime, *, is_nightly: bool = False, remark: str = ""
) -> ReportRun:
    """Puts a run at the end of those that wait; one of the same days that waits already is not asked for twice."""
    waiting = ReportRun.objects.filter(cluster_name=cluster, since=since, until=until, state=RunState.WAITING).first()
    if waiting is not None:
        return waiting
    run = ReportRun.objects.create(
        cluster_name=cluster, since=since, until=until, is_nightly=is_nightly, remark=remark, asked_at=now
    )
    tell(run)
    return run


def ask_nightly(now: datetime) -> ReportRun | None:
    """Asks for yesterday's reports, when it is time; None before, and when a run of it waits, runs or is done."""
    yesterday = now.date() - timedelta(days=1)
    tries = list(ReportRun.objects.filter(is_nightly=True, until=yesterday).values_list("state", flat=True))
    has_failed = all(state == RunState.FAILED for state in tries)
    if now.hour < NIGHT_HOUR or not has_failed or len(tries) >= NIGHT_TRIES_MAX:
        return None
    return ask("", yesterday, yesterday, now, is_nightly=True)


def start_next(now: datetime) -> ReportRun | None:
    """Takes the run that has waited longest; None when none waits, or another is running."""
    run = ReportRun.objects.filter(state=RunState.WAITING).order_by("asked_at", "pk").first()
    if run is None:
        return None
    try:
        with transaction.atomic():
            taken = ReportRun.objects.filter(pk=run.pk, state=RunState.WAITING).update(
                state=RunState.RUNNING, started_at=now, seen_at=now
            )
    except IntegrityError:
        return None
    if not taken:
        return None
    run.refresh_from_db()
    tell(run)
    return run


def note_progress(run: ReportRun, stage: str, percent: int, now: datetime) -> None:
    ReportRun.objects.filter(pk=run.pk, state=RunState.RUNNING).update(stage=stage, percent=percent, seen_at=now)
    tell(run)


def end(run: ReportRun, now: datetime, problem: str = "") -> bool:
    """Ends a run as done, or with a problem as failed; returns False when it had ended before."""
    state = RunState.FAILED if problem else RunState.DONE
    ended = ReportRun.objects.filter(pk=run.pk, state=RunState.RUNNING).update(
        state=state, ended_at=now, problem=problem[:PROBLEM_CHARS_MAX]
    )
    if ended:
        tell(run)
    return bool(ended)


def end_abandoned(now: datetime) -> int:
    """Ends runs whose process is gone; returns how many."""
    gone = ReportRun.objects.filter(state=RunState.RUNNING, seen_at__lt=now - ABANDONED_AFTER)
    words = _(
        "Interrupted: the process of this run was killed. Reports that it had finished stay, nothing else is left."
    )
    return sum(end(run, now, words) for run in gone)


def forget_old() -> None:
    """Removes the oldest runs that ended, beyond RUNS_KEPT."""
    kept = ReportRun.objects.order_by("-asked_at", "-pk").values_list("pk", flat=True)[:RUNS_KEPT]
    ReportRun.objects.exclude(pk__in=list(kept)).filter(state__in=[RunState.DONE, RunState.FAILED]).delete()


def clusters_of(run: ReportRun) -> list[Cluster]:
    found = Cluster.objects.order_by("name")
    return list(found.filter(name=run.cluster_name) if run.cluster_name else found)


def days_of(run: ReportRun) -> list[date]:
    return [run.since + timedelta(days=number) for number in range((run.until - run.since).days + 1)]


def tell(run: ReportRun) -> None:
    names = tuple(one.name for one in clusters_of(run))
    run_changed.send(sender=ReportRun, event=RunChanged(names))
