"""Followers in real Celery workers over a real Redis: started by beat's task, handed over when a worker ends."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.children import Child
from tests.support.migrated import bring_migrated_database
from tests.support.redis_server import RedisServer
from tests.support.scripted_broker import ScriptedBroker, empty_body
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis]

ROOT = Path(__file__).parents[3]
READY_WITHIN_S = 120.0


class Workers:
    """One install without its other processes: a database, Redis, and as many jobs workers as a test starts."""

    def __init__(self, folder: Path, redis: RedisServer, namesrv: str) -> None:
        self.folder = folder
        self._env = {
            "MQADMIN_DATA": str(folder),
            "REDIS_URL": redis.url,
            "MQADMIN_NAMESRV": namesrv,
            "PYTHONUNBUFFERED": "1",
        }
        self._env.update({"DATABASE_URL": "", "PYTHONWARNINGS": "ignore"})
        bring_migrated_database(folder)

    def start(self, name: str, pool: tuple[str, ...]) -> Child:
        command = [sys.executable, "-m", "celery", "-A", "mqadmin", "worker", "-Q", "jobs,following", *pool]
        return Child(
            [*command, "-n", f"{name}@here", "--loglevel", "INFO"],
            self.folder / f"{name}.log",
            cwd=ROOT,
            env=self._env,
        )

    def ensure_observing(self) -> None:
        """What beat does every 5 s."""
        self._manage("shell", "-c", "from mqadmin.observing.tasks import *; ensure_observing.delay()")

    def _manage(self, *words: str) -> None:
        subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env={**os.environ, **self._env},
            check=True,
            capture_output=True,
        )

    def value(self, query: str) -> Any:
        database = sqlite3.connect(self.folder / "mqadmin.sqlite3", timeout=60)
        try:
            row = database.execute(query).fetchone()
        finally:
            database.close()
        return row[0] if row else None


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker(is_watched=True) as broker:
        broker.tell(empty_body())
        yield broker


@pytest.fixture
def workers(tmp_path: Path, broker: ScriptedBroker) -> Iterator[Workers]:
    with RedisServer(tmp_path) as redis:
        yield Workers(tmp_path, redis, broker.address)


PREFORK = ("-P", "prefork", "-c", "2")
THREADS = ("-P", "threads", "-c", "2")
FOLLOWED = "select worker from mq_clusters_followerlease where worker != ''"
STATE = "select state from mq_clusters_cluster where name = 'local'"


def test_follower_ends_with_its_worker_and_another_worker_takes_over(workers: Workers) -> None:
    first = workers.start("first", PREFORK)
    try:
        workers.ensure_observing()
        wait_until(lambda: workers.value(STATE) == "reachable", READY_WITHIN_S, "a followed cluster")
        assert workers.value(FOLLOWED) == "first@here"
        assert first.stop() == 0, "the warm shutdown did not wait for the follower for ever"
        assert workers.value(FOLLOWED) is None, "the lease was released"
    finally:
        first.kill()
    second = workers.start("second", THREADS)
    try:
        workers.ensure_observing()
        wait_until(lambda: workers.value(FOLLOWED) == "second@here", READY_WITHIN_S, "a takeover")
        second.stop()
    finally:
        second.kill()
