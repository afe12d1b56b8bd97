"""A report asked for before anything was sampled: it waits for the first two cycles, for so long and no longer."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, nullcontext
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from mqadmin.clusters.models import VERDICT_RANKS, Cluster, Group, Verdict
from mqadmin.console.report_sentences import stage_text
from mqadmin.lag.models import GroupSample, SampledSpan, SpanState
from mqadmin.lag.packing import QueueSample, Sampled, pack
from mqadmin.reports import first_cycle, runs, tasks, working
from mqadmin.reports.alone import alone
from mqadmin.reports.models import ReportRun, RunState
from mqadmin.reports.progress import Progress, Stages
from tests.support.children import Child
from tests.support.migrated import FILE, ROOT, bring_migrated_database
from tests.support.waiting import wait_until

# A process starts on a busy machine.
WITHIN_S = 300.0
DAY = date(2026, 11, 22)
NOW = datetime(2026, 11, 22, 14, 5, tzinfo=UTC)
NOW_S = int(NOW.timestamp())


@pytest.fixture
def cluster(db: None, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster that was added just now, in an install without Spark, at NOW."""
    settings.MQADMIN_DATA = tmp_path
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    monkeypatch.setattr(working, "_telling", lambda *_: nullcontext())
    monkeypatch.setattr(working, "spark_session", lambda _config: nullcontext())
    monkeypatch.setattr(working, "_spark_figures", lambda _spark: {})
    monkeypatch.setattr(working, "stages_so_far", lambda _spark: Stages(0))
    monkeypatch.setattr(working, "_remark", lambda *_: "")
    return Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")


def sampled(cluster: Cluster, at_s: int, end: int = 10) -> None:
    group, _ = Group.objects.get_or_create(cluster=cluster, name="billing", defaults={"seen_at": NOW})
    packed = pack(Sampled(VERDICT_RANKS[Verdict.OK], 1, 0, (QueueSample("a", 0, 4, end, 0, 0),)))
    GroupSample.objects.create(cluster=cluster, group=group, topic_name="orders", at_s=at_s, packed=packed)


def cycles(cluster: Cluster, since_s: int, until_s: int, state: SpanState = SpanState.COMPLETE, note: str = "") -> None:
    SampledSpan.objects.update_or_create(
        cluster=cluster, state=state, since_s=since_s, defaults={"until_s": until_s, "note": note}
    )


def test_two_cycles_are_over_when_the_second_one_has_held_for_a_second(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def are_two() -> bool:
        return first_cycle.has_two_cycles(cluster, DAY)

    cycles(cluster, NOW_S - 90, NOW_S - 60, SpanState.FAILED, "nothing follows the cluster")
    assert not are_two(), "cycles that saw nothing"
    sampled(cluster, NOW_S - 100_000)
    cycles(cluster, NOW_S - 100_000, NOW_S - 90_000)
    assert not are_two(), "the day before"
    sampled(cluster, NOW_S - 30)
    cycles(cluster, NOW_S - 30, NOW_S - 30)
    assert not are_two(), "one cycle: nothing is known to have moved"
    cycles(cluster, NOW_S - 30, NOW_S)
    assert not are_two(), "the second one has held for no time"
    monkeypatch.setattr(timezone, "now", lambda: NOW + timedelta(seconds=1))
    assert are_two()


def test_what_moved_between_the_first_two_cycles_is_in_the_history_that_is_appended_then(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled(cluster, NOW_S - 30, end=10)
    sampled(cluster, NOW_S, end=25)
    cycles(cluster, NOW_S - 30, NOW_S)
    monkeypatch.setattr(timezone, "now", lambda: NOW + timedelta(seconds=1))
    assert first_cycle.has_two_cycles(cluster, DAY)
    working.append_all()
    rows = pq.read_table(working.history().path("lag", "prod", NOW), partitioning=None).to_pylist()
    assert [(row["ends"], (row["until"] - row["at"]).seconds) for row in rows] == [([10], 30), ([25], 1)]


def test_the_wait_ends_with_the_second_cycle_or_at_its_limit(cluster: Cluster) -> None:
    time_s = 0.0

    def pause(seconds: float) -> None:
        nonlocal time_s
        time_s += seconds
        if with_samples and time_s == 30:
            sampled(cluster, NOW_S - 60)
        if with_samples and time_s == 60:
            cycles(cluster, NOW_S - 60, NOW_S - 30)

    def wait() -> bool:
        return first_cycle.wait_for_first_cycle([cluster], DAY, pause=pause, clock=lambda: time_s)

    with_samples = False
    assert not wait()
    assert time_s == first_cycle.FIRST_CYCLE_WAIT_S
    time_s, with_samples = 0.0, True
    assert wait()
    assert time_s == 60


def test_a_report_of_today_asked_for_before_the_first_sample_is_made_after_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a fresh install: the run waits, holding no lock, and then reports what was sampled."""
    made: list[date] = []

    def sampling_comes(clusters: list[Cluster], _day: date) -> bool:
        with alone(working.results_root().parents[1], wait_s=0):
            sampled(clusters[0], NOW_S - 30)
            cycles(clusters[0], NOW_S - 30, NOW_S)
        return True

    monkeypatch.setattr(working, "wait_for_first_cycle", sampling_comes)
    monkeypatch.setattr(working, "_make", lambda _spark, _cluster, day: made.append(day))
    call_command("report", cluster="prod")
    assert made == [DAY]
    assert ReportRun.objects.get().state == RunState.DONE


@pytest.mark.parametrize(
    ("since", "is_nightly"), [(DAY - timedelta(days=1), False), (DAY, True)], ids=["days that are over", "nights"]
)
def test_only_todays_report_waits_and_no_night(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, since: date, is_nightly: bool
) -> None:
    monkeypatch.setattr(working, "wait_for_first_cycle", lambda *_: pytest.fail("it waits"))
    runs.ask("prod", since, since, NOW, is_nightly=is_nightly)
    run = runs.start_next(NOW)
    assert run is not None
    with nullcontext() if is_nightly else pytest.raises(working.NothingSampled, match="ask for later days"):
        working.work(run)


def test_a_report_waits_for_nothing_once_the_day_has_samples(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    path = working.history().path("lag", "prod", NOW)
    path.parent.mkdir(parents=True)
    path.touch()
    monkeypatch.setattr(working, "wait_for_first_cycle", lambda *_: pytest.fail("it waits"))
    monkeypatch.setattr(working, "_make", lambda *_: None)
    call_command("report", cluster="prod")


@pytest.mark.parametrize(
    ("bring", "words"),
    [
        (lambda cluster: None, "no cycle of sampling was begun: look whether the workers run"),
        (
            lambda cluster: cycles(cluster, NOW_S - 30, NOW_S, SpanState.FAILED, "nothing follows the cluster"),
            "nothing follows the cluster",
        ),
        (lambda cluster: cycles(cluster, NOW_S - 30, NOW_S), "it has no group yet"),
    ],
    ids=["no worker", "not followed", "no group"],
)
def test_where_sampling_does_not_come_the_run_says_what_to_do(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, bring: Callable[[Cluster], None], words: str
) -> None:
    bring(cluster)
    monkeypatch.setattr(first_cycle, "FIRST_CYCLE_WAIT_S", 0.0)
    with pytest.raises(CommandError):
        call_command("report", cluster="prod")
    assert ReportRun.objects.get().problem == (
        f"Nothing was sampled today, and no sample came within 0 s: {words}. Look whether the page of the cluster says "
        "that it is followed or polled; a minute after that, ask for the report again."
    )


def test_the_wait_is_a_step_of_the_progress_in_words(cluster: Cluster) -> None:
    assert Progress(stage="sampling").percent() == 0
    assert stage_text("sampling") == "waiting for the first samples"


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.sqlite
def test_a_worker_that_stops_ends_the_wait_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    """The stop signal goes to the worker's whole process group: so to the process of the run, which waits."""
    data = tmp_path / "data"
    bring_migrated_database(data)
    ours = {"MQADMIN_DATA": str(data), "DATABASE_URL": "", "MQADMIN_APPS": "", "REDIS_URL": ""}
    environment = {**os.environ, **ours, "DJANGO_SETTINGS_MODULE": "mqadmin.settings"}
    script = (
        "import django; django.setup(); from django.core.management import call_command; "
        "from mqadmin.clusters.models import Cluster; "
        "Cluster.objects.create(name='prod', namesrv='127.0.0.1:9'); call_command('report')"
    )
    child = Child([sys.executable, "-c", script], tmp_path / "run.log", env=environment, cwd=ROOT)

    def is_waiting() -> bool:
        assert child.is_running, child.output()
        with closing(sqlite3.connect(data / FILE, timeout=60)) as database:
            return database.execute("SELECT stage FROM mq_reports_reportrun").fetchall() == [("sampling",)]

    try:
        wait_until(is_waiting, WITHIN_S, "the run waits")
        os.killpg(child.pid, signal.SIGTERM)
        code = child.process.wait(WITHIN_S)
    finally:
        child.kill()
    assert code == -signal.SIGTERM
    assert "ended by signal 15" in tasks.problem_of(code, "")
    with alone(data, wait_s=0):
        assert [path.name for path in data.iterdir() if path.is_dir()] == []
