"""`manage.py report` that something happens to at a moment of Spark's work, in the midst of it:

    python -m tests.support.disturbed_report <what> <moment> report --cluster bench --since 2026-11-22

What: `python` (SIGKILL to its process group), `jvm` (SIGKILL to Spark's JVM), `disk` (the JVM's files may not grow any
more: what a full disk is to it). Moments: `stages=20` (so many of Spark's stages are planned, and one is at work),
`writing=groups` (that folder of the result is being written).
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import django
import psutil
from django.core.management import execute_from_command_line

from mqadmin.reports.spark_driver import SparkConfig, spark_session, stages_so_far

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_S = 0.002


def kill_python() -> None:
    os.killpg(0, signal.SIGKILL)


def kill_jvm() -> None:
    jvm().kill()


def fill_disk() -> None:
    resource.prlimit(jvm().pid, resource.RLIMIT_FSIZE, (0, 0))


def jvm() -> psutil.Process:
    children = psutil.Process().children(recursive=True)
    return next(one for one in children if "SparkSubmit" in " ".join(one.cmdline()))


HAPPENINGS: dict[str, Callable[[], None]] = {"python": kill_python, "jvm": kill_jvm, "disk": fill_disk}


def main(what: str, moment: str, arguments: list[str]) -> None:
    from mqadmin.reports import working  # needs Django

    @contextmanager
    def disturbed(config: SparkConfig) -> Iterator[SparkSession]:
        with spark_session(config) as spark:
            waiting = threading.Thread(target=wait, args=(has_come(moment, spark), HAPPENINGS[what]), daemon=True)
            waiting.start()
            yield spark

    working.spark_session = disturbed
    execute_from_command_line(["manage.py", *arguments])


def has_come(moment: str, spark: SparkSession) -> Callable[[], bool]:
    """Returns what tells whether the moment is there."""
    from mqadmin.reports import working  # needs Django

    kind, _equals, value = moment.partition("=")
    drafts = f"day=*/*/run-*/{value}/_temporary"
    before = set(working.results_root().glob(drafts))

    def is_computing() -> bool:
        planned, at_work = stages_so_far(spark)
        return planned >= int(value) and bool(at_work)

    def is_writing() -> bool:
        return not before.issuperset(working.results_root().glob(drafts))

    return {"stages": is_computing, "writing": is_writing}[kind]


def wait(is_there: Callable[[], bool], happen: Callable[[], None]) -> None:
    while not is_there():
        time.sleep(_POLL_S)
    happen()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
    django.setup()
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
