"""A replay whose process is killed again and again, or deployed, broker and Redis killed: nothing is lost, nothing
doubled unsaid.

TORTURE=1 pytest -s tests/crash/test_replays_killed.py      100,000 messages, a dozen kills; the figures are printed
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path

import psutil
import pytest

from mqadmin.observing.gateway import Gateway, ask
from mqadmin.replays.states import Target
from mqadmin.supervision.processes import JOBS_AT_ONCE
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.names import retry_topic
from tests.support.celery_worker import CeleryWorker
from tests.support.children import Child
from tests.support.migrated import FILE, bring_migrated_database
from tests.support.our_broker import OurBroker
from tests.support.reading import stored_count
from tests.support.redis_server import RedisServer
from tests.support.replay_ledger import Onlooker, agreement, stored_places
from tests.support.waiting import wait_until

IS_LONG = bool(os.environ.get("TORTURE"))
MESSAGES = 100_000 if IS_LONG else 5_000
KILLS = 12 if IS_LONG else 3
RATE = 10_000
QUEUES = 4
TOPIC, OTHER = "orders", "refunds"
# Of the replay that the worker drives: slow enough for all that happens under way, then fast.
DEPLOYED, SLOWLY, FAST = 2000, 20, 1000
# Of the replay whose workers are killed: half a second's worth is being sent at any moment.
TO_GROUP, TO_GROUP_RATE = (100_000, 2000) if IS_LONG else (3000, 100)
WITHIN_S = 3600.0 if IS_LONG else 300.0
ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.crash, pytest.mark.timeout(2 * WITHIN_S + 300)]


class Replay:
    """The process that drives it, and its database in a folder of its own."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.env = {"MQADMIN_DATA": str(folder), "DATABASE_URL": "", "REDIS_URL": redis_url}
        self._log = folder / "driver.log"
        self._child: Child | None = None

    def ask(self, *arguments: str) -> str:
        child = Child(self._command(*arguments), self._log.with_suffix(".asked"), cwd=ROOT, env=self.env)
        assert child.ended(120.0) == 0, child.output()
        return child.output().splitlines()[-1]

    def drive(self, number: str) -> Child:
        self._child = Child(self._command("drive", number), self._log, cwd=ROOT, env=self.env)
        return self._child

    def stop(self) -> None:
        if self._child is not None:
            self._child.kill()

    def count(self, query: str) -> int:
        """Returns the one number that a query of the database gives."""
        file = Path(self.env["MQADMIN_DATA"]) / FILE
        with contextlib.closing(sqlite3.connect(file, timeout=60)) as database:
            return int(database.execute(query).fetchone()[0])

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tests.support.replay_process", *arguments]


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as server:
        yield server


@pytest.fixture
def replay(tmp_path: Path, redis_server: RedisServer) -> Iterator[Replay]:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    replay = Replay(folder, redis_server.url)
    bring_migrated_database(folder)
    yield replay
    replay.stop()


def test_every_message_arrives_once_over_kills_of_the_driver_and_the_broker(
    tmp_path: Path, replay: Replay, redis_server: RedisServer
) -> None:
    with OurBroker(tmp_path / "store", "async") as broker:
        make_topic(broker, TOPIC)
        number = replay.ask("seed", broker.namesrv, broker.broker, TOPIC, str(MESSAGES), str(RATE))
        with Onlooker(broker.namesrv, TOPIC) as onlooker:
            driver = replay.drive(number)
            for kill in range(1, KILLS + 1):
                reached = MESSAGES * kill // (KILLS + 2)
                reaches(broker, reached)
                if kill == KILLS // 2 + 1:
                    # While the driver goes on: answers are lost.
                    broker.kill()
                    broker.start()
                driver.kill()
                if kill == KILLS // 2:
                    redis_server.stop()
                    redis_server.start()
                driver = replay.drive(number)
            wait_until(lambda: not driver.is_running, WITHIN_S, "the end of the replay")
            assert driver.process.returncode == 0, driver.output()
            wait_until(lambda: onlooker.seen_count >= stored(broker), WITHIN_S, "what the consumer sees")
        told = json.loads(replay.ask("ledger", number))
        lies = stored_places(broker.broker, TOPIC, QUEUES)

    assert (told["state"], told["total_count"]) == ("done", MESSAGES)
    # The ledger says of each what the broker holds, and what the consumer saw.
    found = agreement(told, onlooker.seen)
    assert onlooker.seen == lies
    assert found.sent_count + found.unknown_count == MESSAGES
    print(f"{found}; the consumer was given {onlooker.deliveries} of {onlooker.seen_count}")


def test_a_replay_stays_paused_over_a_deploy_and_ends_over_kills_of_redis_and_the_broker(
    tmp_path: Path, replay: Replay, redis_server: RedisServer
) -> None:
    worker = CeleryWorker("jobs", "jobs", tmp_path, replay.env, JOBS_AT_ONCE, options=("-B",))
    with OurBroker(tmp_path / "store") as broker, worker:
        make_topic(broker, TOPIC)
        make_topic(broker, OTHER)
        number = replay.ask("seed", broker.namesrv, broker.broker, TOPIC, str(DEPLOYED), str(SLOWLY))
        with Onlooker(broker.namesrv, TOPIC) as onlooker:
            reaches(broker, SLOWLY)
            assert replay.ask("say", "pause_replay", number) == "done"
            assert worker.stop() == 0
            paused = stored(broker)
            with worker:
                # What is sent of another one shows that replays are driven again.
                replay.ask("seed", broker.namesrv, broker.broker, OTHER, "5", str(FAST))
                wait_until(lambda: stored(broker, OTHER) == 5, WITHIN_S, "another replay's messages")
                assert (json.loads(replay.ask("ledger", number))["state"], stored(broker)) == ("paused", paused)
                assert replay.ask("say", "resume_replay", number) == "done"
                reaches(broker, paused + SLOWLY)
                redis_server.stop()
                redis_server.start()
                reaches(broker, stored(broker) + SLOWLY)
                broker.kill()
                broker.start()
                assert stored(broker) < DEPLOYED
                assert replay.ask("say", "set_replay_rate", number, f"rate={FAST}") == "done"

                def is_done() -> bool:
                    return bool(json.loads(replay.ask("ledger", number))["state"] == "done")

                wait_until(is_done, WITHIN_S, "the end of the replay")
            wait_until(lambda: onlooker.seen_count >= stored(broker), WITHIN_S, "what the consumer sees")
        told = json.loads(replay.ask("ledger", number))
        lies = stored_places(broker.broker, TOPIC, QUEUES)
    assert told["total_count"] == DEPLOYED
    found = agreement(told, onlooker.seen)
    assert onlooker.seen == lies
    assert found.sent_count + found.unknown_count == DEPLOYED


def test_a_replay_to_the_group_alone_ends_over_kills_of_its_workers(
    tmp_path: Path, replay: Replay, redis_server: RedisServer
) -> None:
    worker = CeleryWorker("jobs", "jobs", tmp_path, replay.env, JOBS_AT_ONCE, app="tests.support.quick_replays")
    beat = [sys.executable, "-m", "celery", "-A", "mqadmin", "beat", "-l", "WARNING", "--pidfile="]
    retries = retry_topic("billing")
    left_counts: list[int] = []
    children: list[psutil.Process] = []

    def kill_when(happens: Callable[[], bool], kill: Callable[[], None]) -> None:
        wait_until(happens, WITHIN_S, "the moment of a kill")
        children.extend(psutil.Process(worker.pid).children(recursive=True))
        kill()
        left_counts.append(replay.count("SELECT COUNT(*) FROM mq_replays_replayentry WHERE state = 'sending'"))
        if not worker.is_running:
            worker.start()

    def kill_what_drives() -> None:
        for process in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def has_ledger() -> bool:
        return replay.count("SELECT total_count FROM mq_replays_replayjob") > 0

    def is_over() -> bool:
        return replay.count("SELECT state = 'done' FROM mq_replays_replayjob") == 1

    def is_under_way(count: int) -> bool:
        """Whether more are stored, and some on their way."""
        is_sending = replay.count("SELECT COUNT(*) FROM mq_replays_replayentry WHERE state = 'sending'") > 0
        return stored_count(broker.broker, retries, 1) > count and (is_sending or is_over())

    with OurBroker(tmp_path / "store") as broker, worker:
        make_topic(broker, TOPIC)
        with Onlooker(broker.namesrv, TOPIC, "billing") as group, Onlooker(broker.namesrv, TOPIC) as others:
            seed = (broker.namesrv, broker.broker, TOPIC, str(TO_GROUP), str(TO_GROUP_RATE), Target.GROUP.value)
            number = replay.ask("seed", *seed)
            ticks = Child(beat, tmp_path / "beat.log", cwd=ROOT, env=replay.env)
            try:
                kill_when(has_ledger, worker.kill)
                # After the last one, what drives goes on for a moment, beside the worker that comes after it.
                kinds = cycle((worker.kill, kill_what_drives, worker.kill_main))
                for kill_number, kill in zip(range(1, KILLS + 1), kinds, strict=False):
                    sent = TO_GROUP * kill_number // (KILLS + 1)
                    kill_when(partial(is_under_way, sent), kill)
                wait_until(is_over, WITHIN_S, "the end of the replay")
            finally:
                ticks.stop()
            wait_until(lambda: not any(one.is_running() for one in children), WITHIN_S, "the end of what was killed")
            wait_until(
                lambda: group.seen_count >= stored_count(broker.broker, retries, 1), WITHIN_S, "what the group sees"
            )
        told = json.loads(replay.ask("ledger", number))
        lies = stored_places(broker.broker, retries, 1)
        assert (stored(broker), dict(others.seen)) == (0, {})
    assert told["total_count"] == TO_GROUP
    found = agreement(told, group.seen)
    assert group.seen == lies
    # All that the kills left on its way has an outcome: those that are not known are said to be.
    assert found.sent_count + found.unknown_count == TO_GROUP
    assert sum(left_counts) > 0
    print(f"{found}; on their way at each kill: {left_counts}")


def make_topic(broker: OurBroker, name: str) -> None:
    config = TopicConfig(topic_name=name, read_queue_nums=QUEUES, write_queue_nums=QUEUES)

    async def create(gateway: Gateway) -> None:
        assert await gateway.topics.create({broker.broker: config}) == {}

    ask(broker.namesrv, create)


def reaches(broker: OurBroker, count: int) -> None:
    wait_until(lambda: stored(broker) > count, WITHIN_S, f"more than {count} messages")


def stored(broker: OurBroker, topic: str = TOPIC) -> int:
    return stored_count(broker.broker, topic, QUEUES)
