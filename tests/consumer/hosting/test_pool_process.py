"""SIGTERM to a process of a pool, whose main process may stand still with the same signal waiting for it."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.children import Child
from tests.support.tools import require
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
ENDED_WITHIN_S = 180.0
HEARS_WITHIN_S = 0.2
# A main process with one process of its pool, which ends in order (code 3) when the main one was told to stop.
PROGRAM = f"""
import os, signal, time
import django
django.setup()
from consumer.hosting import pool_process
from consumer.hosting.instance import StopSignals
from remoting.shutdown_signal import ShutdownSignal

pool_process.MAIN_HEARS_WITHIN_S = {HEARS_WITHIN_S}
stop = StopSignals(ShutdownSignal(), ShutdownSignal())
child = os.fork()
if not child:
    pool_process.leave_sigterm_to_main(stop)
    print("takes tasks", flush=True)
    while not stop.shutdown.is_set:
        time.sleep(0.01)
    os._exit(3)
signal.signal(signal.SIGTERM, lambda *_: stop.shutdown.set())
print("exit", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def main(tmp_path: Path) -> Child:
    require(sys.platform == "linux", "elsewhere nobody says which signals wait for a process")
    env = {"DJANGO_SETTINGS_MODULE": "mqadmin.settings", "MQADMIN_DATA": str(tmp_path)}
    child = Child([sys.executable, "-c", PROGRAM], tmp_path / "main.log", cwd=ROOT, env=env)
    wait_until(lambda: "takes tasks" in child.output(), what="the process of the pool")
    return child


def test_a_process_waits_for_a_main_process_that_stands_still(main: Child) -> None:
    try:
        stopped = psutil.Process(main.pid)
        (process,) = stopped.children()
        stopped.suspend()
        wait_until(lambda: stopped.status() == psutil.STATUS_STOPPED, what="a main process that stands still")
        for each in (stopped, process):
            each.send_signal(signal.SIGTERM)
        time.sleep(5 * HEARS_WITHIN_S)
        stopped.resume()
        assert main.process.wait(ENDED_WITHIN_S) == 0
        assert main.output().endswith("exit 3\n")
    finally:
        main.kill()


def test_a_process_that_alone_was_sent_the_signal_ends_by_it(main: Child) -> None:
    try:
        (process,) = psutil.Process(main.pid).children()
        process.send_signal(signal.SIGTERM)
        assert main.process.wait(ENDED_WITHIN_S) == 0
        assert main.output().endswith(f"exit {signal.SIGTERM}\n")
    finally:
        main.kill()
