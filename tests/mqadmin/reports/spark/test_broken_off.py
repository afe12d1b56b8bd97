"""A run that breaks off at any stage leaves what was there, and made again the figures are the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.reports import keeping, runs, spark_job, working
from mqadmin.reports.history import LAG
from mqadmin.reports.models import DayReport, GroupDay, ReportRun
from tests.mqadmin.reports.spark.test_spark_job import sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

DAY = date(2026, 11, 22)
BEGIN = datetime(2026, 11, 22, tzinfo=UTC)


class BrokenOff(BaseException):
    """What a signal is to a process, for a test: nothing catches it."""


@pytest.fixture
def cluster(spark: SparkSession, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster with an hour of history; runs have the session of all tests."""
    settings.MQADMIN_DATA = tmp_path

    @contextmanager
    def session(_config: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(working, "spark_session", session)
    write(BEGIN, sample(BEGIN, 60, 100, 40, BEGIN))
    return Cluster.objects.create(name="c", namesrv="127.0.0.1:9876")


def write(at: datetime, row: dict[str, Any]) -> None:
    with working.history().writing("lag", "c", at, is_complete=True) as writer:
        writer.write_table(pa.Table.from_pylist([row], schema=LAG))


def make() -> None:
    now = timezone.now()
    runs.ask("c", DAY, DAY, now)
    run = runs.start_next(now)
    assert run is not None
    try:
        working.work(run)
    finally:
        runs.end(run, now)


def canonical() -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in ("id", "report_id")} for row in GroupDay.objects.values()]


def break_off(*_: object, **__: object) -> None:
    raise BrokenOff


def last_step(figures: Any, *_: object, **__: object) -> None:
    """Breaks off when half of the rows are written."""
    GroupDay.objects.filter(pk__gt=0).delete()
    raise BrokenOff


STAGES = {
    "appending": (working, "append_due", break_off),
    "reading": (working.History, "check", break_off),
    "computing": (spark_job, "make", break_off),
    "reading the result": (spark_job, "rows", break_off),
    "writing rows": (GroupDay.objects, "bulk_create", last_step),
    "removing what is left over": (keeping, "remove_leftovers", break_off),
}


def test_a_run_that_breaks_off_anywhere_leaves_what_was_there_and_is_made_again_with_the_same_figures(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    make()
    first, digest = canonical(), DayReport.objects.get().digest
    for stage, place in STAGES.items():
        with monkeypatch.context() as patched:
            patched.setattr(*place)
            with pytest.raises(BrokenOff):
                make()
        assert canonical() == first, f"broken off at {stage}: what was there before stays"
    make()
    report = DayReport.objects.get()
    assert (canonical(), report.digest, report.revision) == (first, digest, 1)
    folders = list(keeping.day_folder(working.results_root(), "c", DAY).iterdir())
    assert [str(path.relative_to(working.results_root())) for path in folders] == [report.folder]


def test_late_data_makes_another_revision_and_a_bad_file_changes_nothing(cluster: Cluster) -> None:
    make()
    later = BEGIN + timedelta(hours=1)
    write(later, sample(later, 60, 500, 40, BEGIN))
    make()
    assert (DayReport.objects.get().revision, GroupDay.objects.get().lag_max) == (2, 460)
    working.history().path("lag", "c", later).write_bytes(b"torn")
    with pytest.raises(working.ReportsFailed, match="cannot be read"):
        make()
    assert (DayReport.objects.get().revision, GroupDay.objects.get().lag_max) == (2, 460)


def test_a_run_says_what_it_left_out(cluster: Cluster) -> None:
    later = BEGIN + timedelta(hours=1)
    write(later, sample(later + timedelta(days=400), 60, 999_999, 0))
    make()
    assert "from the future" in ReportRun.objects.get().remark
    assert GroupDay.objects.get().lag_max == 60
