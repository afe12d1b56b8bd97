"""Carries out one run in this process: appends what is new to the history, then makes each report on Spark.

The JVM lives as long as the run. How far it is goes into the run's row every few seconds, from a thread: Spark computes
while this one waits.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext as _

from mqadmin.clusters.models import Cluster
from mqadmin.objectives.selectors import objectives_of
from mqadmin.reports import judging, keeping, mailing, receivers, runs, spark_job
from mqadmin.reports.alone import alone, clear_scratch, remove_drafts
from mqadmin.reports.appending import append_due
from mqadmin.reports.events import append_events
from mqadmin.reports.history import BadHistory, History, day_bounds
from mqadmin.reports.models import PROBLEM_CHARS_MAX, ReportRun
from mqadmin.reports.spark_driver import SparkConfig, executors, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

PROGRESS_EVERY_S = 2.0
# How long a run waits for an append that is under way.
APPEND_WAIT_S = 600.0
# The percent at which the history is appended and Spark is up; and before, and after Spark.
_STARTED_PERCENT = 15
_STAGE_PERCENT = {"appending": 5, "starting": 10, "computing": 99}


class NothingSampled(Exception):
    """There is nothing to report."""


@dataclass(slots=True)
class _Progress:
    """What the thread reads. `part` of `parts` reports is being made."""

    stage: str = "appending"
    part: int = 0
    parts: int = 1
    spark: Any = None

    def percent(self) -> int:
        # Taken once: the other thread takes it away when Spark stops.
        spark = self.spark
        if spark is None:
            return _STAGE_PERCENT[self.stage]
        return min(99, _STARTED_PERCENT + int((100 - _STARTED_PERCENT) * (self.part + _share_done(spark)) / self.parts))


def _share_done(spark: SparkSession) -> float:
    """Returns the share of the tasks of Spark's stages at work that are done."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    total = sum(stage.numTasks for stage in known)
    return sum(stage.numCompletedTasks for stage in known) / total if total else 0.0


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


def _append(cluster: Cluster, now: datetime) -> int:
    return append_due(history(), cluster, now) + append_events(history(), cluster, now)


def work(run: ReportRun) -> None:
    """Makes the reports of a run. Raises BadHistory at its end, when the other reports are made.

    Raises Busy when an append does not end. Raises NothingSampled when there is nothing to report, unless beat asked:
    of a night before the first sample.
    """
    clusters, days = runs.clusters_of(run), runs.days_of(run)
    progress = _Progress()
    with _telling(run, progress), alone(Path(settings.MQADMIN_DATA), wait_s=APPEND_WAIT_S):
        remove_drafts(history())
        clear_scratch(_scratch())
        now = timezone.now()
        run.row_count = sum(_append(cluster, now) for cluster in clusters)
        parts = [(cluster, day) for day in days for cluster in clusters if _has_history(cluster.name, day)]
        if parts:
            _compute(run, parts, progress)
        elif not run.is_nightly:
            raise NothingSampled(_("Nothing was sampled on these days."))
    ReportRun.objects.filter(pk=run.pk).update(
        row_count=run.row_count, figures=run.figures, remark=run.remark[:PROBLEM_CHARS_MAX]
    )


def _compute(run: ReportRun, parts: Sequence[tuple[Cluster, date]], progress: _Progress) -> None:
    """Makes one report after the other on one Spark session."""
    progress.stage, progress.parts = "starting", len(parts)
    unreadable: list[BadHistory] = []
    with spark_session(SparkConfig(settings.SPARK_MASTER, _scratch())) as spark:
        progress.spark, progress.stage = spark, "computing"
        try:
            for cluster, day in parts:
                try:
                    _make(spark, cluster, day)
                    if run.is_nightly:
                        mailing.ask(run, cluster, day, timezone.now())
                    run.remark = run.remark or _remark(cluster, day)
                except BadHistory as error:
                    unreadable.append(error)
                progress.part += 1
            run.figures = _spark_figures(spark)
        finally:
            progress.spark = None
    if unreadable:
        raise unreadable[0]


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
    strays = history().strays(cluster.name, day)
    if not strays:
        return ""
    words = _("%(path)s has samples of another time than its own, perhaps from the future: they are left out.")
    return words % {"path": strays[0]}


@contextmanager
def _telling(run: ReportRun, progress: _Progress) -> Iterator[None]:
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
