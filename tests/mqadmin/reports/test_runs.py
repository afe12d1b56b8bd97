"""Runs: asked for once, one at a time, ended when their process is gone; nights."""

from __future__ import annotations

import signal
import subprocess
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.reports import runs, tasks
from mqadmin.reports.models import ReportRun, RunState

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 22, 14, tzinfo=UTC)
DAY = date(2026, 11, 21)


def test_the_same_days_are_not_asked_for_twice_while_they_wait() -> None:
    first = runs.ask("prod", DAY, DAY, NOW)
    assert runs.ask("prod", DAY, DAY, NOW) == first
    assert runs.ask("other", DAY, DAY, NOW) != first


def test_one_run_at_a_time_the_one_that_waited_longest_first() -> None:
    first = runs.ask("a", DAY, DAY, NOW)
    second = runs.ask("b", DAY, DAY, NOW + timedelta(seconds=1))
    assert runs.start_next(NOW) == first
    assert runs.start_next(NOW) is None
    assert runs.end(first, NOW)
    assert not runs.end(first, NOW, "too late"), "it has ended already"
    assert runs.start_next(NOW) == second


def test_a_run_whose_process_is_gone_is_ended_and_the_next_one_begins() -> None:
    lost = runs.ask("a", DAY, DAY, NOW)
    runs.start_next(NOW)
    assert runs.end_abandoned(NOW + timedelta(seconds=60)) == 0
    runs.note_progress(lost, "computing", 40, NOW + timedelta(seconds=60))
    assert runs.end_abandoned(NOW + timedelta(seconds=120)) == 0
    assert runs.end_abandoned(NOW + timedelta(seconds=160)) == 1
    lost.refresh_from_db()
    assert (lost.state, lost.percent) == (RunState.FAILED, 40)
    assert "was killed" in lost.problem


def test_a_night_is_asked_for_once_and_not_before_its_hour() -> None:
    midnight = datetime(2026, 11, 22, tzinfo=UTC)
    assert runs.ask_nightly(midnight + timedelta(minutes=59)) is None
    night = runs.ask_nightly(midnight + timedelta(hours=1))
    assert night is not None
    assert (night.cluster_name, night.since, night.until) == ("", DAY, DAY)
    assert runs.ask_nightly(midnight + timedelta(hours=2)) is None
    assert runs.ask_nightly(midnight + timedelta(hours=25)) is not None


def test_a_night_that_failed_is_tried_again_and_not_for_ever() -> None:
    at = datetime(2026, 11, 22, 3, tzinfo=UTC)
    for _ in range(runs.NIGHT_TRIES_MAX):
        night = runs.ask_nightly(at)
        assert night is not None
        assert runs.ask_nightly(at) is None
        assert runs.start_next(at) == night
        runs.end(night, at, "stopped")
    assert runs.ask_nightly(at) is None


def test_a_process_that_a_signal_ended_said_nothing_of_it() -> None:
    assert "ended by signal 15" in tasks.problem_of(-15, "Setting default log level")
    assert tasks.problem_of(1, "noise\nCommandError: no Java\n") == "CommandError: no Java"
    assert tasks.problem_of(1, "") == "The process of this run ended with 1."


def test_a_run_that_takes_too_long_is_ended_as_failed_and_the_next_one_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that would start, and is not there yet when its time is over, is killed."""
    begun: list[subprocess.Popen[str]] = []

    class Process(subprocess.Popen[str]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            begun.append(self)

    monkeypatch.setattr(tasks, "RUN_TIMEOUT_S", 0.1)
    monkeypatch.setattr("mqadmin.reports.tasks.subprocess.Popen", Process)
    monkeypatch.setattr(runs, "ask_nightly", lambda _: None)
    Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")
    for number in range(2):
        runs.ask("prod", DAY - timedelta(days=number), DAY, NOW)
    tasks.make_reports()
    found = [(run.state, run.problem) for run in ReportRun.objects.all()]
    assert found == [(RunState.FAILED, "It was not done within 0 minutes.")] * 2
    assert [process.returncode for process in begun] == [-signal.SIGKILL] * 2


def test_a_process_that_fails_leaves_its_last_words_in_the_log_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")
    runs.ask("prod", DAY, DAY, NOW)
    words = "CommandError: There is no Java 17 or newer"
    monkeypatch.setattr(tasks, "_manage", lambda *_: (1, words))
    monkeypatch.setattr(runs, "ask_nightly", lambda _: None)
    tasks.make_reports()
    (run,) = ReportRun.objects.all()
    assert (run.state, run.problem) == (RunState.FAILED, words)


def test_the_oldest_runs_that_ended_are_forgotten_at_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "RUNS_KEPT", 2)
    monkeypatch.setattr(runs, "ask_nightly", lambda _: None)
    for number in range(4):
        runs.ask(f"c{number}", DAY, DAY, NOW + timedelta(seconds=number))
    ended = [RunState.DONE, RunState.RUNNING, RunState.FAILED, RunState.DONE]
    for run, state in zip(ReportRun.objects.order_by("asked_at"), ended, strict=True):
        ReportRun.objects.filter(pk=run.pk).update(state=state, seen_at=timezone.now())
    tasks.make_reports()
    kept = ReportRun.objects.order_by("asked_at").values_list("cluster_name", flat=True)
    assert list(kept) == ["c1", "c2", "c3"], "one that runs is no old one"
