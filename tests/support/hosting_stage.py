"""Everything of an install but the console, for journeys of hosting: Redis, broker, database, workers and beat."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import psycopg

from tests.support.broker_probe import BrokerProbe
from tests.support.celery_worker import CeleryWorker
from tests.support.children import Child
from tests.support.install import ROOT, celery, manage
from tests.support.migrated import bring_migrated_database
from tests.support.our_broker import OurBroker
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until


class HostingStage:
    """`apps` as MQADMIN_APPS; the database is SQLite in `data`, or the one that DATABASE_URL of `env` names."""

    def __init__(
        self, folder: Path, redis: RedisServer, broker: OurBroker, apps: str, env: dict[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.redis = redis
        self.broker = broker
        self.probe = BrokerProbe(broker.broker)
        self.env = {
            "MQADMIN_DATA": str(self.data),
            "MQADMIN_APPS": apps,
            "MQADMIN_NAMESRV": broker.namesrv,
            "REDIS_URL": redis.url,
            "DATABASE_URL": "",
            **(env or {}),
        }
        bring_migrated_database(self.data)

    def manage(self, *arguments: str) -> str:
        return manage(self.env, *arguments)

    def worker(self, name: str, queue: str, concurrency: int, *options: str) -> CeleryWorker:
        return CeleryWorker(name, queue, self.folder, self.env, concurrency, options)

    @contextlib.contextmanager
    def supervised(self) -> Iterator[None]:
        """Migrates; runs the worker that supervises, and beat."""
        self.manage("migrate", "--verbosity", "0", "--skip-checks")
        beat = [sys.executable, "-m", "celery", "-A", "mqadmin", "beat", "-l", "WARNING", "--pidfile="]
        with self.worker("jobs", "jobs", 3):
            child = Child(beat, self.folder / "beat.log", cwd=ROOT, env=self.env)
            try:
                yield
            finally:
                child.stop()

    def hand_out(self, *queues: str) -> None:
        """Hands a task that is due in an hour to a worker of each queue, which holds it without acknowledging it."""
        for queue in queues:
            celery(self.env, "call", "consumer.tasks.supervise", "--countdown", "3600", "--queue", queue)
        wait_until(lambda: self.redis.held_count() >= len(queues), what="tasks in the workers' hands")

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """Runs a statement with `?` for each value, and commits."""
        if self.env["DATABASE_URL"]:
            with psycopg.connect(self.env["DATABASE_URL"]) as connection:
                cursor = connection.execute(query.replace("?", "%s"), values)  # type: ignore[call-overload]
                return cursor.fetchall() if cursor.description else []
        with contextlib.closing(sqlite3.connect(self.data / "mqadmin.sqlite3", timeout=60)) as database:
            rows = database.execute(query, values).fetchall()
            database.commit()
            return rows

    def running(self, group: str, cluster: str = "") -> list[str]:
        """Client ids of the instances whose leases say that they run."""
        query = (
            "SELECT l.client_id FROM mq_consumer_instancelease l JOIN mq_consumer_hostedgroup g ON g.id = l.group_id"
            " WHERE g.\"group\" = ? AND g.cluster = ? AND l.state = 'running'"
        )
        return [str(row[0]) for row in self.rows(query, group, cluster)]

    def want(self, group: str, count: int) -> None:
        self.rows('UPDATE mq_consumer_hostedgroup SET wanted_instances = ? WHERE "group" = ?', count, group)

    def hosted_by(self) -> dict[str, set[str]]:
        """Worker name → client ids of the instances that run on it."""
        rows = self.rows("SELECT worker, client_id FROM mq_consumer_instancelease WHERE state = 'running'")
        found: dict[str, set[str]] = {}
        for worker, client_id in rows:
            found.setdefault(str(worker).partition("@")[0], set()).add(str(client_id))
        return found

    def members(self, group: str) -> set[str]:
        """Client ids, as the broker knows them."""
        return self.probe.members(group)


class RecordingStage(HostingStage):
    """With the app `recording`, whose listeners write down what they consume."""

    def __init__(self, folder: Path, redis: RedisServer, broker: OurBroker, env: dict[str, str] | None = None) -> None:
        lines = folder / "recorded"
        lines.touch()
        super().__init__(folder, redis, broker, "tests.support.recording", {"RECORDED": str(lines), **(env or {})})

    def recorded(self, group: str) -> list[str]:
        """The bodies of the messages that the group has consumed."""
        lines = (self.folder / "recorded").read_text().splitlines()
        return [line.split()[-1] for line in lines if line.startswith(f"{group} ")]

    def is_consumed(self, groups: Iterable[str], sent: Iterable[str]) -> bool:
        return all(set(self.recorded(group)) >= set(sent) for group in groups)
