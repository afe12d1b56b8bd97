"""Carries out one run in this process: appends what is new to the history, then makes each report on Spark.

One that is asked for today before anything was sampled waits for the first two cycles (`first_cycle.py`).

The JVM lives as long as the run. How far it is goes into the run's row every few seconds, from a thread: Spark computes
while this one waits.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext as _

from mqadmin.clusters.models import Cluster
from mqadmin.objectives.selectors import objectives_of
from mqadmin.reports import judging, keeping, mailing, receivers, runs, spark_job
from mqadmin.reports.alone import alone, clear_scratch, remove_drafts
from mqadmin.reports.appending import append_due, unheard
from mqadmin.reports.events import append_events
from mqadmin.reports.first_cycle import nothing_sampled, wait_for_first_cycle
from mqadmin.reports.history import BadHistory, History
from mqadmin.reports.models import PROBLEM_CHARS_MAX, ReportRun
from mqadmin.reports.periods import day_bounds
from mqadmin.reports.problems import problem_of
from mqadmin.reports.progress import Progress
from mqadmin.reports.spark_driver import SparkConfig, executors, settings_for, spark_session, stages_so_far

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

PROGRESS_EVERY_S = 2.0
# How long a run waits for an append that is under way.
APPEND_WAIT_S = 600.0


class NothingSampled(Exception):
    """There is nothing to report."""


class ReportsFailed(Exception):
    """Some reports of a run could not be made; the text says of which cluster and day the first was, and why."""


def history() -> History:
    return History(Path(settings.MQADMIN_DATA) / "history")


def results_root() -> Path:
    return Path(settings.MQADMIN_DATA) / "reports" / "v1"


def _scratch() -> Path:
    """Returns where Spark spills to."""
    return Path(settings.MQADMIN_DATA) / "spark"


def _has_history(cluster: str, day: date) -> bool:
    """Tells whether anything was sampled on that day; without, there is nothing to report."""
    return any(path.stem == cluster for path in history().files("lag", day))


def append_all() -> int:
    """Appends what the hot windows of all clusters have, and removes what is older than is kept; returns the rows.

    Raises Busy when a run is under way, which appends itself.
    """
    now, kept = timezone.now(), history()
    with alone(Path(settings.MQADMIN_DATA), wait_s=0):
        remove_drafts(kept)
        rows = sum(_append(cluster, now) for cluster in runs.clusters_of(ReportRun()))
        oldest = now.date() - timedelta(days=settings.MQADMIN_HISTORY_DAYS)
        kept.remove_before(oldest)
        keeping.remove_before(results_root(), oldest)
    receivers.forget_old(now)
    mailing.forget_old(now)
    return rows


def _append(cluster: Cluster, now: datetime, told: Callable[[float], None] = unheard) -> int:
    """Tells `told` the share of the hours that are appended."""
    # In this order: the second one notes how far the history is.
    return append_events(history(), cluster, now) + append_due(history(), cluster, now, told)


def work(run: ReportRun) -> None:
    """Makes the reports of a run. Raises ReportsFailed at its end, when the other reports are made.

    Raises Busy when an append does not end. Raises NothingSampled when there is nothing to report, unless beat asked:
    of a night before the first sample.
    """
    clusters, days, today = runs.clusters_of(run), runs.days_of(run), timezone.now().date()
    progress = Progress()
    with _telling(run, progress):
        # Before the lock: what waits keeps no append from the history. Of no cluster nothing will come.
        if clusters and not run.is_nightly and today in days and not _parts(clusters, days):
            progress.stage = "sampling"
            wait_for_first_cycle(clusters, today)
            progress.stage = "appending"
        try:
            _report(run, progress)
        finally:
            ReportRun.objects.filter(pk=run.pk).update(
                row_count=run.row_count, figures=run.figures, remark=run.remark[:PROBLEM_CHARS_MAX]
            )


def _report(run: ReportRun, progress: Progress) -> None:
    clusters, days = runs.clusters_of(run), runs.days_of(run)
    with alone(Path(settings.MQADMIN_DATA), wait_s=APPEND_WAIT_S):
        remove_drafts(history())
        clear_scratch(_scratch())
        now = timezone.now()
        run.row_count = 0
        for number, cluster in enumerate(clusters):
            run.row_count += _append(cluster, now, partial(progress.note_appended, number, len(clusters)))
        parts = _parts(clusters, days)
        if parts:
            _compute(run, parts, progress)
        elif not run.is_nightly:
            raise NothingSampled(nothing_sampled(clusters, is_today=bool(clusters) and now.date() in days))


def _parts(clusters: Sequence[Cluster], days: Sequence[date]) -> list[tuple[Cluster, date]]:
    """Returns of which clusters and days there is something to report."""
    return [(cluster, day) for day in days for cluster in clusters if _has_history(cluster.name, day)]


def _history_bytes(parts: Sequence[tuple[Cluster, date]]) -> int:
    kept = history()
    files = (path for cluster, day in parts for path in kept.files("lag", day) if path.stem == cluster.name)
    return sum(path.stat().st_size for path in files)


def _compute(run: ReportRun, parts: Sequence[tuple[Cluster, date]], progress: Progress) -> None:
    """Makes one report after the other on one Spark session; one that fails keeps no other from being made.

    Where Spark itself has ended, its session says why, and no other can be made.
    """
    progress.begin_reports(len(parts))
    failed: list[tuple[str, Exception]] = []
    config = SparkConfig(settings.SPARK_MASTER, _scratch(), settings=settings_for(_history_bytes(parts)))
    with spark_session(config) as spark:
        progress.begin_computing(partial(stages_so_far, spark))
        try:
            for cluster, day in parts:
                try:
                    _make(spark, cluster, day)
                    if run.is_nightly:
                        mailing.ask(run, cluster, day, timezone.now())
                    _add_remark(run, _remark(cluster, day))
                except Exception as error:
                    if not _is_there(spark):
                        raise
                    logger.exception("the report of %s of %s failed", cluster.name, day)
                    failed.append((_failure(cluster, day, error), error))
                progress.end_report()
            run.figures = _spark_figures(spark)
        finally:
            progress.end_computing()
    if failed:
        raise ReportsFailed(failed[0][0]) from failed[0][1]


def _is_there(spark: SparkSession) -> bool:
    try:
        stages_so_far(spark)
    except Exception:
        return False
    return True


def _failure(cluster: Cluster, day: date, error: Exception) -> str:
    """Returns of what a report failed, in one line: with the file where one cannot be read."""
    words = problem_of(error)
    damaged = None if isinstance(error, BadHistory) else history().damaged(cluster.name, day)
    if damaged is not None:
        words = _("%(path)s cannot be read: move it away. %(error)s") % {"path": damaged, "error": words}
    return f"{cluster.name}, {day.isoformat()}: {words}"


def _add_remark(run: ReportRun, words: str) -> None:
    """Adds to what a run says beside its reports; what it says already is not said twice."""
    if words and words not in run.remark:
        run.remark = f"{run.remark} {words}".strip()


def _make(spark: SparkSession, cluster: Cluster, day: date) -> None:
    folder = keeping.day_folder(results_root(), cluster.name, day) / f"run-{uuid.uuid4().hex}"
    _begin, end = day_bounds(day)
    spark_job.make(spark, history(), _unit(cluster, day), folder)
    keeping.keep(
        cluster,
        day,
        spark_job.rows(spark, folder),
        folder=folder,
        root=results_root(),
        objectives=objectives_of(cluster, min(end - timedelta(seconds=1), timezone.now())),
        now=timezone.now(),
    )


def _unit(cluster: Cluster, day: date) -> spark_job.Unit:
    """Gathers what is held about a day besides its samples: objectives, and the results of the days before."""
    begin, end = day_bounds(day)
    held = []
    if judging.has_objectives(cluster, begin, end):
        held = judging.objectives_held(cluster, history().groups(cluster.name, day), begin, end)
    return spark_job.Unit(cluster.name, day, held, keeping.result_folders(results_root(), cluster, day))


def _remark(cluster: Cluster, day: date) -> str:
    """Returns what a run leaves out and goes on all the same."""
    remarks = []
    if strays := history().strays(cluster.name, day):
        words = _("%(path)s has samples of another time than its own, perhaps from the future: they are left out.")
        remarks.append(words % {"path": strays[0]})
    for since, until in history().lost(cluster.name, day):
        words = _(
            "Samples of %(cluster)s from %(since)s to %(until)s (UTC) were removed before they were appended to the"
            " history: no report has them."
        )
        times = {"since": f"{since:%Y-%m-%d %H:%M}", "until": f"{until:%Y-%m-%d %H:%M}"}
        remarks.append(words % {"cluster": cluster.name, **times})
    return " ".join(remarks)


@contextmanager
def _telling(run: ReportRun, progress: Progress) -> Iterator[None]:
    """Writes how far the run is from a thread, until the block ends."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(PROGRESS_EVERY_S):
            try:
                runs.note_progress(run, progress.stage, progress.percent(), timezone.now())
            except Exception as error:
                # The next one may do better; the run itself goes on.
                logger.debug("progress of run %s was not written: %s", run.pk, error)
        connection.close()

    thread = threading.Thread(target=tell, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _spark_figures(spark: SparkSession) -> dict[str, int]:
    found = executors(spark)
    return {
        "tasks": sum(one.totalTasks() for one in found),
        "input_bytes": sum(one.totalInputBytes() for one in found),
        "shuffle_bytes": sum(one.totalShuffleWrite() for one in found),
        "garbage_ms": sum(one.totalGCTime() for one in found),
    }
