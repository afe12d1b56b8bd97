"""Celery: the night's reports, those that were asked for, and the hourly append (queue `reports`, one at a time).

Each runs in a process of its own, which takes Spark's memory with it when it ends: an idle worker is as small as any.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys

from celery import shared_task
from django.utils import timezone
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError

from mqadmin.reports import late_data, runs
from mqadmin.reports.models import ReportRun
from mqadmin.supervision.parent_death import END_WITH_PARENT

logger = logging.getLogger(__name__)

# A year's back-fill of a small cluster; one day of 10,000 groups takes a quarter of an hour.
RUN_TIMEOUT_S = 2 * 3600
APPEND_TIMEOUT_S = 1800
# At one turn; beat starts another soon.
RUNS_PER_TURN = 20


@shared_task
def make_reports() -> None:
    """Asks for the night's reports when it is time, and for one that lacks later data; makes all that wait."""
    runs.end_abandoned(timezone.now())
    runs.ask_nightly(timezone.now())
    late_data.ask(timezone.now())
    for _turn in range(RUNS_PER_TURN):
        run = runs.start_next(timezone.now())
        if run is None:
            break
        _make(run)
    runs.forget_old()


@shared_task
def append_history() -> None:
    """Appends what the hot window has to the history."""
    code, last_words = _manage(["report", "--append"], APPEND_TIMEOUT_S)
    if code:
        logger.error("the history was not appended: %s", last_words)


def wake() -> None:
    """Has runs made that wait. Without Redis they are made when beat says so."""
    try:
        make_reports.apply_async(retry=False)
    except OperationalError as error:
        logger.warning("reports are made later: %s", error)


def _make(run: ReportRun) -> None:
    code, last_words = _manage(["report", "--run", str(run.pk)], RUN_TIMEOUT_S)
    if code and runs.end(run, timezone.now(), last_words):
        logger.error("%s failed: %s", run, last_words)


def _manage(arguments: list[str], timeout_s: float) -> tuple[int, str]:
    """Runs a management command to its end; returns its exit code and, when it failed, one line that says why."""
    parent = os.getpid()
    child = subprocess.Popen(
        [sys.executable, "-m", "django", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: END_WITH_PARENT(parent, signal.SIGKILL),
    )
    try:
        output, _errors = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return -signal.SIGKILL, _("It was not done within %(n)s minutes.") % {"n": round(timeout_s / 60)}
    return child.returncode, problem_of(child.returncode, output)


def problem_of(code: int, output: str) -> str:
    """Returns the last line of a command that failed; what a signal ended said nothing of it."""
    if code < 0:
        words = _(
            "Interrupted: the process of this run was ended by signal %(number)s. Reports that it had finished stay,"
            " nothing else is left."
        )
        return words % {"number": -code}
    lines = output.strip().splitlines()
    return lines[-1] if lines else _("The process of this run ended with %(code)s.") % {"code": code}
