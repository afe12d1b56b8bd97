"""Data that comes when the report of its day is made: noted where it is appended, reported again, not for each row."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from consumer.models import DeliveryHour
from mqadmin.clusters.models import VERDICT_RANKS, Cluster, Group, Verdict
from mqadmin.deadletters.models import Failure, FailureHour
from mqadmin.lag.models import GroupSample, SampledSpan, SpanState
from mqadmin.lag.packing import QueueSample, Sampled, pack
from mqadmin.objectives.values import Objectives
from mqadmin.reports import keeping, late_data, runs, tasks
from mqadmin.reports.appending import append_due
from mqadmin.reports.events import append_events
from mqadmin.reports.history import History
from mqadmin.reports.models import DayReport, ReportRun, RunState
from tests.mqadmin.reports.test_keeping import FIGURES

pytestmark = pytest.mark.django_db

DAY = date(2026, 11, 22)
HOUR = datetime(2026, 11, 22, 22, tzinfo=UTC)
MADE_AT = datetime(2026, 11, 23, 1, 5, tzinfo=UTC)
LATER = MADE_AT + timedelta(hours=1)
DUE = MADE_AT + late_data.AGAIN_AFTER


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")


@pytest.fixture
def report(cluster: Cluster, tmp_path: Path) -> DayReport:
    return make(cluster, tmp_path, "1", MADE_AT)


def make(cluster: Cluster, root: Path, run: str, now: datetime, **figures: Any) -> DayReport:
    return keeping.keep(
        cluster, DAY, [FIGURES | figures], folder=keeping.day_folder(root, "prod", DAY) / f"run-{run}", root=root,
        objectives=Objectives(), now=now,
    )  # fmt: skip


def late_at() -> datetime | None:
    return DayReport.objects.get().late_at


def asked() -> list[tuple[str, date, date]]:
    return [(run.cluster_name, run.since, run.until) for run in ReportRun.objects.all()]


def dead_letter(cluster: Cluster, count: int) -> None:
    failure, _ = Failure.objects.get_or_create(
        cluster=cluster, group_name="billing", identity="1", failure_class="Timeout",
        defaults={"first_dead_at": HOUR, "last_dead_at": HOUR},
    )  # fmt: skip
    FailureHour.objects.update_or_create(failure=failure, hour=HOUR, defaults={"dead_count": count})


def test_a_dead_letter_of_a_reported_day_is_noted_and_one_that_is_there_is_not(
    cluster: Cluster, report: DayReport, tmp_path: Path
) -> None:
    history = History(tmp_path / "history")
    append_events(history, cluster, LATER)
    assert late_at() is None
    dead_letter(cluster, 1)
    append_events(history, cluster, LATER)
    assert late_at() == LATER
    make(cluster, tmp_path, "2", LATER, dead=9)
    assert late_at() is None, "the run has it"
    append_events(history, cluster, LATER + timedelta(hours=1))
    assert late_at() is None
    dead_letter(cluster, 2)
    append_events(history, cluster, LATER + timedelta(hours=1))
    assert late_at() == LATER + timedelta(hours=1)


def test_what_instances_tell_late_is_noted_and_an_hour_that_is_only_closed_is_not(
    cluster: Cluster, report: DayReport, tmp_path: Path, settings: Any
) -> None:
    settings.MQADMIN_NAMESRV = cluster.namesrv
    history = History(tmp_path / "history")
    told = {"group": "billing", "topic": "orders", "hour_s": int(HOUR.timestamp())}
    DeliveryHour.objects.create(**told, member="a", counts=[[3, 7]])
    append_events(history, cluster, LATER - timedelta(minutes=30))
    make(cluster, tmp_path, "2", LATER)
    append_events(history, cluster, LATER + timedelta(hours=4))
    assert history.is_complete("prod", HOUR, "deliveries")
    assert late_at() is None
    DayReport.objects.update(late_at=None)
    history.path("deliveries", "prod", HOUR).unlink()
    DeliveryHour.objects.create(**told, member="b", counts=[[3, 1]])
    append_events(history, cluster, LATER)
    assert late_at() == LATER


def test_samples_of_a_reported_day_that_are_appended_late_are_noted(
    cluster: Cluster, report: DayReport, tmp_path: Path
) -> None:
    group = Group.objects.create(cluster=cluster, name="billing", seen_at=HOUR)
    packed = pack(Sampled(VERDICT_RANKS[Verdict.OK], 1, 0, (QueueSample("a", 0, 4, 10, 0, 0),)))
    at_s = int(HOUR.timestamp())
    GroupSample.objects.create(cluster=cluster, group=group, topic_name="orders", at_s=at_s, packed=packed)
    SampledSpan.objects.create(cluster=cluster, state=SpanState.COMPLETE, since_s=at_s, until_s=at_s + 60)
    assert append_due(History(tmp_path / "history"), cluster, LATER) == 1
    assert late_at() == LATER


def test_a_day_that_is_not_over_is_not_late(cluster: Cluster, tmp_path: Path) -> None:
    make(cluster, tmp_path, "1", HOUR)
    dead_letter(cluster, 1)
    append_events(History(tmp_path / "history"), cluster, HOUR + timedelta(minutes=10))
    assert late_at() is None, "its night has a report of all of it"


def test_late_data_is_reported_by_one_run_some_hours_after_the_report(cluster: Cluster, report: DayReport) -> None:
    assert late_data.ask(DUE) is None, "nothing came"
    for minutes in range(5):
        late_data.note(cluster, DAY, LATER + timedelta(minutes=minutes))
    assert late_at() == LATER
    assert late_data.ask(DUE - timedelta(seconds=1)) is None
    run = late_data.ask(DUE)
    assert run is not None
    assert (run.cluster_name, run.since, run.until, run.is_nightly) == ("prod", DAY, DAY, False)
    assert "it is made again" in run.remark
    for hours in range(6):
        late_data.ask(DUE + timedelta(hours=hours))
    assert asked() == [("prod", DAY, DAY)]


def test_a_run_for_late_data_that_fails_is_tried_again_and_not_for_ever(cluster: Cluster, report: DayReport) -> None:
    late_data.note(cluster, DAY, LATER)
    now = DUE
    while now < DUE + timedelta(days=30):
        if (run := late_data.ask(now)) is not None:
            assert runs.start_next(now) == run
            runs.end(run, now, "no Java")
        now += timedelta(minutes=30)
    assert 2 <= len(asked()) <= late_data.DAYS_BACK * 4


@pytest.mark.parametrize("cluster_name", ["prod", ""])
def test_a_run_of_these_days_that_was_asked_for_anyway_is_enough(
    cluster: Cluster, report: DayReport, cluster_name: str
) -> None:
    late_data.note(cluster, DAY, LATER)
    runs.ask(cluster_name, DAY - timedelta(days=2), DAY, DUE - timedelta(minutes=1))
    assert late_data.ask(DUE) is None


def test_the_scheduled_look_asks_and_the_report_gets_another_revision(
    cluster: Cluster, report: DayReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "ask_nightly", lambda _now: None)
    monkeypatch.setattr("django.utils.timezone.now", lambda: DUE)
    late_data.note(cluster, DAY, LATER)

    def made(arguments: list[str], _timeout_s: float) -> tuple[int, str]:
        make(cluster, tmp_path, "2", DUE, dead=9)
        runs.end(ReportRun.objects.get(pk=int(arguments[-1])), DUE)
        return 0, ""

    monkeypatch.setattr(tasks, "_manage", made)
    tasks.make_reports()
    again = DayReport.objects.get()
    assert (report.revision, again.revision, again.late_at) == (1, 2, None)
    assert [run.state for run in ReportRun.objects.all()] == [RunState.DONE]
    tasks.make_reports()
    assert len(asked()) == 1
