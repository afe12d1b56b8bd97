"""A Celery worker that is told to stop at a bad time for the processes of its pool."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import psutil
import pytest

from mqadmin.supervision.child import ChildSpec
from tests.support.celery_worker import CeleryWorker
from tests.support.held_start import held, let_go
from tests.support.install import celery
from tests.support.migrated import bring_migrated_database
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis]


def worker_env(folder: Path, redis: RedisServer, app: str) -> dict[str, str]:
    """What the worker is told, with `app` beside the project's own; its database is there, and empty."""
    bring_migrated_database(folder / "data")
    return {
        "MQADMIN_DATA": str(folder / "data"),
        "MQADMIN_APPS": app,
        "REDIS_URL": redis.url,
        "DATABASE_URL": "",
    }


def waiting_processes(env: dict[str, str]) -> int:
    """How many processes of the pool have told the worker that they take tasks; it hands none to the others."""
    name = f"jobs@{socket.gethostname()}"
    answers = json.loads(celery(env, "inspect", "--json", "--destination", name, "--timeout", "60", "stats"))
    count: int = answers[name]["pool"]["writes"]["inqueues"]["total"]
    return count


def test_a_worker_ends_within_its_grace_though_it_never_heard_that_a_task_began(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    with RedisServer(tmp_path) as redis:
        env = worker_env(tmp_path, redis, "tests.support.recording") | {"RECORDED": str(recorded)}
        with CeleryWorker("jobs", "jobs", tmp_path, env, concurrency=2) as worker:
            main = psutil.Process(worker.pid)
            pool_processes = main.children()
            wait_until(lambda: waiting_processes(env) == len(pool_processes) == 2, what="a pool that takes tasks")
            for process in pool_processes:
                process.suspend()
            celery(env, "call", "recording.work", "--kwargs", '{"body": "handed out"}', "--queue", "jobs")
            wait_until(lambda: redis.held_count() == 1, what="the task in the worker's hand")
            # Another turn of the worker's loop: the first task is with a process by then.
            celery(env, "call", "consumer.tasks.supervise", "--countdown", "3600", "--queue", "jobs")
            wait_until(lambda: redis.held_count() == 2, what="a second task in the worker's hand")
            threads = main.num_threads()
            main.send_signal(signal.SIGTERM)
            wait_until(lambda: main.num_threads() > threads, what="Celery's thread beside the end of its pool")
            for process in pool_processes:
                process.resume()
            assert worker.ended(ChildSpec.stop_grace_s) == os.EX_OK
        assert "handed out" in recorded.read_text()


def test_a_worker_ends_in_order_by_sigterm_to_all_its_processes_while_its_pool_is_being_prepared(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "held"
    folder.mkdir()
    with RedisServer(tmp_path) as redis:
        env = worker_env(tmp_path, redis, "tests.support.held_start") | {"HELD_START": str(folder)}
        with CeleryWorker("jobs", "jobs", tmp_path, env, concurrency=2) as worker:
            main = psutil.Process(worker.pid)
            wait_until(lambda: len(held(folder)) == 2, what="both processes of the pool")
            for process in [*main.children(), main]:
                process.send_signal(signal.SIGTERM)
            wait_until(lambda: "Warm shutdown" in worker.output(), what="the worker's shutdown")
            let_go(folder)
            assert worker.ended(ChildSpec.stop_grace_s) == os.EX_OK
        assert "exited with" not in worker.output()
