"""A report killed by SIGKILL before, in and after each of its steps: what was there is seen until all of it is new.

Each run is a process of its own, forked from this one, that kills itself at a place of the table below. Spark's place
is taken by a few lines that write the same folders, so that every step of ours can be had in a second;
`spark/test_whole_runs.py` does it with Spark and its JVM. After each kill the same run is made again, and the rows,
the files and the folders must be those of a run that nobody disturbed.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from consumer.models import DeliveryHour
from mqadmin.clusters.models import VERDICT_RANKS, Cluster, Group, Verdict
from mqadmin.lag.models import GroupSample, SampledSpan, SpanState
from mqadmin.lag.packing import QueueSample, Sampled, pack
from mqadmin.reports import alone, keeping, runs, spark_job, tasks, working
from mqadmin.reports.history import History, hour_of
from mqadmin.reports.models import DayReport, GroupDay, ReportRun, RunState
from mqadmin.reports.progress import Stages
from tests.mqadmin.reports.test_keeping import FIGURES, START_MS
from tests.support.forked import fork

pytestmark = [
    pytest.mark.crash,
    pytest.mark.slow,
    pytest.mark.sqlite,  # forks, which only a database in a file survives as simply
    pytest.mark.django_db(transaction=True),
]

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process kills itself: at the `call`-th call of a function, when it begins, or when it has ended."""

    owner: object
    name: str
    call: int = 1
    is_after: bool = False

    def arm(self) -> None:
        original, calls = getattr(self.owner, self.name), itertools.count(1)

        def dying(*args: Any, **options: Any) -> Any:
            is_it = next(calls) == self.call
            if is_it and not self.is_after:
                die()
            result = original(*args, **options)
            if is_it and self.is_after:
                die()
            return result

        setattr(self.owner, self.name, dying)


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("killed")


# In the order in which a run comes there.
PLACES = {
    "before anything": Place(working, "work"),
    "before the history is appended": Place(working, "append_due"),
    "with a draft of the gaps": Place(pq.ParquetWriter, "write_table"),
    "with a draft that is whole": Place(os, "replace"),
    "with the gaps of an hour and not its samples": Place(os, "replace", is_after=True),
    "with half a draft of the samples": Place(pq.ParquetWriter, "write_table", call=2, is_after=True),
    "with the samples of an hour": Place(os, "replace", call=2, is_after=True),
    "with what instances told of an hour": Place(os, "replace", call=3, is_after=True),
    "before what happened is appended": Place(working, "append_events"),
    "with what happened appended": Place(working, "append_events", is_after=True),
    "before Spark starts": Place(working, "spark_session"),
    "with Spark started": Place(working, "_unit"),
    "before it computes": Place(spark_job, "make"),
    "with one result of three": Place(pq, "write_table", is_after=True),
    "with all results": Place(spark_job, "make", is_after=True),
    "before the figures are read": Place(spark_job, "rows"),
    "with half of the figures read": Place(keeping, "_row", is_after=True),
    "with the report's row written": Place(DayReport, "save", is_after=True),
    "before the groups are written": Place(GroupDay.objects, "bulk_create"),
    "with the groups written, uncommitted": Place(GroupDay.objects, "bulk_create", is_after=True),
    "with all committed": Place(keeping, "remove_leftovers"),
    "with what is left over removed": Place(keeping, "remove_leftovers", is_after=True),
    "before it is noted as done": Place(runs, "end"),
    "with it noted as done": Place(runs, "end", is_after=True),
}
# From here on the new figures are there.
COMMITTED = (
    "with all committed",
    "with what is left over removed",
    "before it is noted as done",
    "with it noted as done",
)


def make_like_spark(_spark: object, history: History, unit: spark_job.Unit, folder: Path) -> None:
    """Writes the three folders; the figures are how many samples the day has, of two groups."""
    paths = history.check("lag", unit.cluster, unit.day)
    most = max(max(row["ends"]) for path in paths for row in pq.read_table(path, partitioning=None).to_pylist())
    for name in (spark_job.GROUPS, spark_job.QUEUES, spark_job.HOURS):
        (folder / name).mkdir(parents=True)
        groups = pa.table({"consumer_group": ["billing", "ledger"], "lag_max": [most, most]})
        pq.write_table(groups, folder / name / "part-0.parquet")


def rows_like_spark(_spark: object, folder: Path) -> Iterator[dict[str, Any]]:
    table = pq.read_table(folder / spark_job.GROUPS / "part-0.parquet", partitioning=None)
    yield from (FIGURES | row for row in table.to_pylist())


@contextmanager
def no_session(_config: object) -> Iterator[None]:
    yield None


@dataclass(frozen=True, slots=True)
class Install:
    """A cluster whose hot window has an hour that is over and one that is open."""

    cluster: Cluster
    over: datetime

    @property
    def day(self) -> date:
        return self.over.date()

    def late(self, number: int) -> None:
        """Brings late data, another figure: a file of an hour that the hot window has not."""
        hour = datetime(self.day.year, self.day.month, self.day.day, 0 if self.over.hour else 23, tzinfo=UTC)
        row = {
            "cluster": "prod", "consumer_group": "billing", "topic": "orders", "at": hour,
            "until": hour + timedelta(minutes=1), "verdict": "ok", "members": 1, "brokers": ["a"], "queues": [0],
            "committed": [0], "ends": [number], "waiting_since_ms": [0], "doubt_ms": [0],
        }  # fmt: skip
        with working.history().writing("lag", "prod", hour, is_complete=True) as writer:
            writer.write_table(pa.Table.from_pylist([row], schema=writer.schema))

    def forget_the_hour(self) -> None:
        """Has the next run append the hour that is over once more."""
        for kind in ("lag", "gaps", "deliveries"):
            working.history().path(kind, "prod", self.over).unlink(missing_ok=True)

    def samples(self) -> list[dict[str, Any]]:
        path = working.history().path("lag", "prod", self.over)
        return list(pq.read_table(path, partitioning=None).to_pylist())


@pytest.fixture
def install(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Install:
    settings.MQADMIN_DATA = tmp_path
    settings.MQADMIN_NAMESRV = "127.0.0.1:9876"
    monkeypatch.setattr(spark_job, "make", make_like_spark)
    monkeypatch.setattr(spark_job, "rows", rows_like_spark)
    monkeypatch.setattr(working, "spark_session", no_session)
    monkeypatch.setattr(working, "_spark_figures", lambda _spark: {"tasks": 1})
    monkeypatch.setattr(working, "stages_so_far", lambda _spark: Stages(0))
    over = hour_of(timezone.now()) - timedelta(hours=2)
    begin_ms = int(datetime(over.year, over.month, over.day, tzinfo=UTC).timestamp()) * 1000
    shift_ms = begin_ms - START_MS
    moved = [hour | {"hour": hour["hour"] + shift_ms} for hour in FIGURES["hours"]]
    unusual = [hour | {"hour": hour["hour"] + shift_ms} for hour in FIGURES["anomalies"]]
    of_the_day = {"hours": moved, "anomalies": unusual, "worst_hour": FIGURES["worst_hour"] + shift_ms}
    for name, value in of_the_day.items():
        monkeypatch.setitem(FIGURES, name, value)
    cluster = Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")
    group = Group.objects.create(cluster=cluster, name="billing", seen_at=over)
    first_s = int(over.timestamp())
    packed = pack(Sampled(VERDICT_RANKS[Verdict.OK], 2, 0, (QueueSample("a", 0, 4, 10, 0, 0),)))
    for at_s in (first_s, first_s + 300, first_s + 3600):
        GroupSample.objects.create(cluster=cluster, group=group, topic_name="orders", at_s=at_s, packed=packed)
    SampledSpan.objects.create(cluster=cluster, state=SpanState.COMPLETE, since_s=first_s, until_s=first_s + 3630)
    DeliveryHour.objects.create(group="billing", topic="orders", member="a", hour_s=first_s, counts=[[3, 7]])
    return Install(cluster, over)


def forked(place: Place | None, work: Callable[[], object], look: Callable[[], None]) -> int:
    """Does `work` in a process of its own, which kills itself at `place`; returns what wait says of it.

    `look` is called again and again meanwhile.
    """

    def step() -> None:
        if place is not None:
            place.arm()
        work()

    connection.close()
    pid = fork(step)
    while True:
        look()
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.05)


def taken(install: Install) -> ReportRun:
    now = timezone.now()
    runs.ask("prod", install.day, install.day, now)
    run = runs.start_next(now)
    assert run is not None
    return run


def canonical() -> list[dict[str, Any]]:
    rows = GroupDay.objects.order_by("group_name").values()
    return [{name: value for name, value in row.items() if name not in ("id", "report_id")} for row in rows]


def leftovers(install: Install) -> list[str]:
    """Everything in the data folder that is no file of the history, and not the folder that the report's row names."""
    data = working.history().folder.parent
    named = working.results_root() / DayReport.objects.get().folder
    known = [named, data / "reports.lock"]
    paths = [path for path in data.rglob("*") if path.is_file() and not any(path.is_relative_to(one) for one in known)]
    history = working.history()
    kept = {path for kind in ("lag", "gaps", "deliveries") for path in history.root.glob(f"{kind}/*/*/prod.parquet")}
    run_folders = list(keeping.day_folder(working.results_root(), "prod", install.day).glob("run-*"))
    return [str(path) for path in paths if path not in kept] + [str(path) for path in run_folders if path != named]


def seen_by_rest(http: Client, install: Install) -> set[int]:
    """The figure as REST and the page have it: of both groups the same, or the report is half."""
    rest = http.get(f"/api/v1/clusters/prod/reports/{install.day}").json()
    assert [row["group"] for row in rest["items"]] == ["billing", "ledger"]
    page = http.get(f"/clusters/prod/reports/{install.day}/").content.decode()
    assert page.count('data-row="billing"') == page.count('data-row="ledger"') == 1
    return {row["lag_max"] for row in rest["items"]}


@pytest.mark.timeout(1800)
def test_a_run_killed_anywhere_leaves_what_was_there_and_is_made_again_as_if_nobody_had_disturbed_it(
    install: Install, client: Client, ann: Any
) -> None:
    client.force_login(ann)
    install.late(1000)
    run = taken(install)
    call_command("report", run=run.pk)
    undisturbed_hour, revision = install.samples(), 1
    for number, name in enumerate(PLACES, start=1001):
        install.late(number)
        install.forget_the_hour()
        before, run = canonical(), taken(install)

        def is_whole() -> None:
            assert {row["lag_max"] for row in canonical()} in ({number - 1}, {number}), name  # noqa: B023

        status = forked(PLACES[name], lambda: call_command("report", run=run.pk), is_whole)  # noqa: B023
        assert os.WIFSIGNALED(status), f"{name}: it never came there"
        assert os.WTERMSIG(status) == signal.SIGKILL
        new = [row | {"lag_max": number} for row in before]
        assert canonical() == (new if name in COMMITTED else before), name
        assert seen_by_rest(client, install) == ({number} if name in COMMITTED else {number - 1}), name
        if name != "with it noted as done":
            assert runs.start_next(timezone.now()) is None, "one at a time, until the killed one is given up"
            assert runs.end(run, timezone.now(), tasks.problem_of(-signal.SIGKILL, ""))
            run.refresh_from_db()
            assert (run.state, run.problem.split(":")[0]) == (RunState.FAILED, "Interrupted")
        again = taken(install)
        assert forked(None, lambda: call_command("report", run=again.pk), is_whole) == 0  # noqa: B023
        again.refresh_from_db()
        revision += 1
        assert (again.state, canonical(), DayReport.objects.get().revision) == (RunState.DONE, new, revision), name
        assert install.samples() == undisturbed_hour, name
        assert leftovers(install) == [], name


def test_an_append_killed_between_its_files_is_made_again_and_a_run_under_way_keeps_it_out(install: Install) -> None:
    def nothing() -> None: ...

    def append() -> None:
        call_command("report", append=True)

    append()
    first = install.samples()
    for name in [name for name in PLACES if "gaps" in name or "draft" in name or "hour" in name]:
        install.forget_the_hour()
        assert os.WIFSIGNALED(forked(PLACES[name], append, nothing)), name
        with alone.alone(working.history().folder.parent, wait_s=0):
            drafts = working.history().drafts(install.day)
            assert forked(None, append, nothing) == 0
            assert working.history().drafts(install.day) == drafts, "a run is under way: the append leaves it alone"
        assert forked(None, append, nothing) == 0
        assert install.samples() == first, name
        assert [*working.history().drafts(install.day), *working.history().drafts(timezone.now().date())] == [], name


def test_what_a_killed_spark_left_is_removed_by_the_next_run(install: Install) -> None:
    scratch = working.history().folder.parent / "spark"
    (scratch / "blockmgr-1" / "0a").mkdir(parents=True)
    (scratch / "blockmgr-1" / "0a" / "shuffle_0").write_bytes(b"spilled")
    (scratch / "liblz4.so").write_bytes(b"")
    call_command("report", run=taken(install).pk)
    assert list(scratch.iterdir()) == []
