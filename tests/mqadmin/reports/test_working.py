"""A run from the history to the rows, with Spark's place taken: what is skipped, what stays when a report fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.db import OperationalError
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.reports import runs, spark_driver, working
from mqadmin.reports.history import GAPS, BadHistory
from mqadmin.reports.models import MailRecipients, ReportMail, ReportRun
from mqadmin.reports.progress import Stages
from mqadmin.reports.spark_driver import LIGHT_SETTINGS, SparkConfig

pytestmark = pytest.mark.django_db

DAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Any) -> list[tuple[str, date]]:
    """The reports that were made; that of `bad` cannot be."""
    settings.MQADMIN_DATA = tmp_path
    found: list[tuple[str, date]] = []

    @contextmanager
    def session(_config: object) -> Iterator[None]:
        yield None

    def make(_spark: object, cluster: Cluster, day: date) -> None:
        if cluster.name == "bad":
            raise BadHistory("bad.parquet cannot be read: move it away.")
        found.append((cluster.name, day))

    monkeypatch.setattr(working, "spark_session", session)
    monkeypatch.setattr(working, "_make", make)
    monkeypatch.setattr(working, "stages_so_far", lambda _spark: Stages(0))
    monkeypatch.setattr(working, "_remark", lambda *_: "")
    monkeypatch.setattr(working, "_spark_figures", lambda _spark: {"tasks": 3})
    monkeypatch.setattr(working, "_telling", lambda *_: session(None))
    return found


def run_of(cluster: str = "", *, is_nightly: bool = False) -> ReportRun:
    runs.ask(cluster, DAY, DAY, NOW, is_nightly=is_nightly)
    run = runs.start_next(NOW)
    assert run is not None
    return run


def sampled(*clusters: str) -> None:
    for name in clusters:
        Cluster.objects.create(name=name, namesrv="127.0.0.1:9876")
        path = working.history().path("lag", name, datetime(2026, 11, 21, 5, tzinfo=UTC))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_a_file_that_cannot_be_read_costs_its_own_report_alone(made: list[tuple[str, date]]) -> None:
    sampled("bad", "good")
    run = run_of()
    with pytest.raises(working.ReportsFailed, match=r"^bad, 2026-11-21: bad\.parquet"):
        working.work(run)
    assert made == [("good", DAY)]


def test_a_cluster_of_which_nothing_was_sampled_is_left_out(made: list[tuple[str, date]]) -> None:
    sampled("good")
    Cluster.objects.create(name="new", namesrv="127.0.0.1:9876")
    run = run_of()
    working.work(run)
    assert made == [("good", DAY)]
    assert ReportRun.objects.get(pk=run.pk).figures == {"tasks": 3}


@pytest.mark.parametrize(("spare_bytes", "expected"), [(0, LIGHT_SETTINGS), (-1, {})], ids=["little", "more"])
def test_of_a_run_that_has_little_to_compute_spark_compiles_lightly(
    made: list[tuple[str, date]], monkeypatch: pytest.MonkeyPatch, spare_bytes: int, expected: dict[str, str]
) -> None:
    found: list[SparkConfig] = []

    @contextmanager
    def session(config: SparkConfig) -> Iterator[None]:
        found.append(config)
        yield None

    monkeypatch.setattr(working, "spark_session", session)
    sampled("good", "other")
    working.history().path("lag", "good", datetime(2026, 11, 21, 5, tzinfo=UTC)).write_bytes(b"12345")
    working.history().path("lag", "other", datetime(2026, 11, 21, 5, tzinfo=UTC)).write_bytes(b"not of this run")
    monkeypatch.setattr(spark_driver, "LIGHT_BYTES_MAX", 5 + spare_bytes)
    working.work(run_of("good"))
    assert made == [("good", DAY)]
    assert [config.settings for config in found] == [expected]


def test_without_any_sample_a_person_is_told_and_a_night_is_quiet(made: list[tuple[str, date]]) -> None:
    Cluster.objects.create(name="new", namesrv="127.0.0.1:9876")
    with pytest.raises(working.NothingSampled):
        working.work(run_of("new"))
    ReportRun.objects.all().delete()
    working.work(run_of(is_nightly=True))
    assert made == []


@pytest.mark.parametrize(("is_nightly", "count"), [(True, 1), (False, 0)])
def test_a_night_that_was_reported_is_mailed_and_run_now_is_not(
    made: list[tuple[str, date]], is_nightly: bool, count: int
) -> None:
    sampled("bad", "good")
    for cluster in Cluster.objects.all():
        MailRecipients.objects.create(cluster=cluster, language="en", addresses="ann@example.com")
    with pytest.raises(working.ReportsFailed):
        working.work(run_of(is_nightly=is_nightly))
    assert [mail.cluster.name for mail in ReportMail.objects.all()] == ["good"] * count


def test_mails_that_cannot_be_asked_for_cost_the_report_nothing(
    made: list[tuple[str, date]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise OperationalError("database is locked")

    sampled("good")
    monkeypatch.setattr(MailRecipients.objects, "filter", away)
    working.work(run_of(is_nightly=True))
    assert made == [("good", DAY)]


def test_what_was_removed_before_it_was_appended_stands_in_the_remark(tmp_path: Path, settings: Any) -> None:
    settings.MQADMIN_DATA = tmp_path
    cluster = Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")
    for number in (3, 4, 7):
        hour = datetime(2026, 11, 21, number, tzinfo=UTC)
        lost = {"cluster": "prod", "at": hour, "until": hour + timedelta(hours=1), "state": "lost", "note": ""}
        with working.history().writing("gaps", "prod", hour, is_complete=True) as writer:
            writer.write_table(pa.Table.from_pylist([lost | {"state": "late"}, lost], schema=GAPS))
    damaged = working.history().path("gaps", "prod", datetime(2026, 11, 21, 9, tzinfo=UTC))
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"not Parquet")
    first, second = working._remark(cluster, DAY).split(". ")
    assert "prod from 2026-11-21 03:00 to 2026-11-21 05:00 (UTC) were removed before they were appended" in first
    assert "from 2026-11-21 07:00 to 2026-11-21 08:00" in second


def test_a_damaged_page_costs_its_own_report_alone_and_is_told_with_its_file(
    made: list[tuple[str, date]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled("good", "odd")
    path = working.history().path("lag", "odd", datetime(2026, 11, 21, 5, tzinfo=UTC))
    whole = pa.Table.from_pydict({"n": list(range(50_000))})
    pq.write_table(whole, path)
    content = bytearray(path.read_bytes())
    content[8:2000] = bytes(1992)
    path.write_bytes(bytes(content))
    make = working._make

    def reading(spark: Any, cluster: Cluster, day: date) -> None:
        if cluster.name == "odd":
            pq.read_table(path, partitioning=None)
        make(spark, cluster, day)

    monkeypatch.setattr(working, "_make", reading)
    monkeypatch.setattr(working, "_remark", lambda cluster, _day: f"{cluster.name} has strays.")
    runs.ask("", DAY, DAY, NOW, remark="Later data came.")
    run = runs.start_next(NOW)
    assert run is not None
    with pytest.raises(working.ReportsFailed, match=r"^odd, 2026-11-21: .*odd\.parquet cannot be read: move it away"):
        working.work(run)
    assert made == [("good", DAY)]
    run.refresh_from_db()
    assert (run.figures, run.remark) == ({"tasks": 3}, "Later data came. good has strays.")


def test_a_run_without_any_cluster_waits_for_nothing(
    made: list[tuple[str, date]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "wait_for_first_cycle", lambda *_: pytest.fail("it waits"))
    today = timezone.now().date()
    runs.ask("deleted", today, today, NOW)
    run = runs.start_next(NOW)
    assert run is not None
    with pytest.raises(working.NothingSampled):
        working.work(run)
