"""A replay whose process is killed again and again, and whose broker is killed too: nothing is lost, nothing doubled.

TORTURE=1 pytest tests/crash/test_replays_killed.py      100,000 messages, a dozen kills, Redis restarted
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqadmin.observing.gateway import Gateway, ask
from remoting.wire.bodies.topics import TopicConfig
from tests.support.children import Child
from tests.support.install import manage
from tests.support.our_broker import OurBroker
from tests.support.reading import message_count, stored_messages
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.crash

IS_LONG = bool(os.environ.get("TORTURE"))
MESSAGES = 100_000 if IS_LONG else 5_000
KILLS = 12 if IS_LONG else 3
RATE = 10_000
QUEUES = 4
TOPIC = "orders"
WITHIN_S = 1800.0 if IS_LONG else 300.0
ROOT = Path(__file__).parents[2]


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
    manage(replay.env, "migrate", "--verbosity=0")
    yield replay
    replay.stop()


def stored_count(broker: OurBroker) -> int:
    return sum(message_count(broker.broker, TOPIC, queue_id) for queue_id in range(QUEUES))


def stored_by_entry(broker: OurBroker) -> dict[int, list[tuple[int, int, bytes]]]:
    """Returns by entry of the ledger where its messages lie, and their bodies."""
    found: defaultdict[int, list[tuple[int, int, bytes]]] = defaultdict(list)
    for queue_id in range(QUEUES):
        offset = 0
        while page := stored_messages(broker.broker, TOPIC, queue_id, offset):
            offset = page[-1].queue_offset + 1
            for message in page:
                place = (queue_id, message.queue_offset, message.body)
                found[int(message.properties["__REPLAY_ENTRY"])].append(place)
    return found


def test_every_message_arrives_once_over_kills_of_the_driver_and_the_broker(
    tmp_path: Path, replay: Replay, redis_server: RedisServer
) -> None:
    with OurBroker(tmp_path / "store", "async") as broker:
        config = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)

        async def create(gateway: Gateway) -> None:
            assert await gateway.topics.create({broker.broker: config}) == {}

        ask(broker.namesrv, create)
        number = replay.ask("seed", broker.namesrv, broker.broker, TOPIC, str(MESSAGES), str(RATE))
        driver = replay.drive(number)
        for kill in range(1, KILLS + 1):
            reached = MESSAGES * kill // (KILLS + 2)
            wait_until(lambda reached=reached: stored_count(broker) > reached, WITHIN_S, f"{reached} messages")
            if kill == KILLS // 2 + 1:
                # While the driver goes on: answers are lost.
                broker.kill()
                broker.start()
            driver.kill()
            if IS_LONG and kill == KILLS // 2:
                redis_server.stop()
                redis_server.start()
            driver = replay.drive(number)
        wait_until(lambda: not driver.is_running, WITHIN_S, "the end of the replay")
        assert driver.process.returncode == 0, driver.output()
        told = json.loads(replay.ask("ledger", number))
        stored = stored_by_entry(broker)

    entries = {entry["id"]: entry for entry in told["entries"]}
    assert (told["state"], told["total_count"]) == ("done", MESSAGES)
    assert told["sent_count"] + told["unknown_count"] == MESSAGES
    unknown = {key for key, entry in entries.items() if entry["state"] == "unknown"}
    # Each arrived, as the ledger says, and where it says.
    assert stored.keys() >= entries.keys() - unknown
    assert {key for key, places in stored.items() if len(places) > 1} <= unknown
    for key, entry in entries.items():
        if key not in unknown:
            assert stored[key] == [(entry["queue_id"], entry["queue_offset"], entry["message_id"].encode())]
