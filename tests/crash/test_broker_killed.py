"""kill -9 of a whole broker that many senders are using, again and again, on one store.

Must survive, in both flush modes: every message whose sender heard SEND_OK, at the queue offset it was told, and the
topic itself. May vanish: what was not acknowledged. Must never appear: a message that nobody sent, or one twice.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from pathlib import Path

import pytest

from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import StoreConfig
from remoting.client.admin import Admin
from remoting.client.connections import Connections
from remoting.client.errors import ClientError
from remoting.client.producer import Producer
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.pull import SUBSCRIPTION_FLAG
from remoting.wire.stored_message import StoredMessage, decode_messages
from tests.support.our_broker import OurBroker
from tests.support.waiting import eventually

pytestmark = [pytest.mark.crash, pytest.mark.journey]

ROUNDS = 20 if os.environ.get("TORTURE") else 3
SENDERS = 24
TOPIC = "orders"
# A kill is heard of at once; before it, a busy disk is no reason to give up.
ANSWER_WITHIN_MS = 60_000


class Load:
    """Bodies tell who sent them and which of his it is. `acknowledged`: body to (queue id, queue offset)."""

    def __init__(self) -> None:
        self.tried: set[bytes] = set()
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self._numbers = itertools.count()

    async def run(self, broker: OurBroker, seconds: float) -> None:
        """Sends until the broker is killed, `seconds` after the first answer, and everybody has heard of it."""
        before = len(self.acknowledged)
        producer = Producer(broker.namesrv, "sellers", retries=0, timeout_ms=ANSWER_WITHIN_MS)
        await producer.start()
        try:
            senders = [asyncio.create_task(self._send(producer)) for _ in range(SENDERS)]
            await eventually(lambda: len(self.acknowledged) > before, what="an acknowledgement")
            await asyncio.sleep(seconds)
            broker.kill()
            await asyncio.gather(*senders)
        finally:
            await producer.close()

    async def _send(self, producer: Producer) -> None:
        while True:
            number = next(self._numbers)
            body = b"%d:" % number + b"x" * (number % 700)
            self.tried.add(body)
            try:
                result = await producer.send(TOPIC, body, keys=f"k{number}")
            except ClientError:
                return
            self.acknowledged[body] = (result.queue.queue_id, result.queue_offset)


async def read_all(broker: OurBroker) -> dict[bytes, tuple[int, int]]:
    """Every message as a tool reads it: body to (queue id, queue offset)."""
    connections = Connections()
    try:
        edges = await Admin(connections, timeout_ms=ANSWER_WITHIN_MS).topics.stats(broker.broker, TOPIC)
        messages: list[StoredMessage] = []
        for queue, edge in edges.items():
            messages += await _read_queue(connections, broker.broker, queue.queue_id, edge.max_offset)
    finally:
        await connections.close()
    found = {bytes(message.body): (message.queue_id, message.queue_offset) for message in messages}
    assert len(found) == len(messages), "a message came twice"
    return found


async def _read_queue(connections: Connections, address: str, queue_id: int, end: int) -> list[StoredMessage]:
    messages: list[StoredMessage] = []
    while len(messages) < end:
        fields = {
            "consumerGroup": "TOOLS_CONSUMER",
            "topic": TOPIC,
            "queueId": queue_id,
            "queueOffset": len(messages),
            "maxMsgNums": 32,
            "sysFlag": SUBSCRIPTION_FLAG,
            "commitOffset": 0,
            "suspendTimeoutMillis": 0,
            "subscription": "*",
            "subVersion": 0,
        }
        request = Command(
            code=RequestCode.PULL_MESSAGE, ext_fields={name: str(field) for name, field in fields.items()}
        )
        answer = await connections.request(address, request, ANSWER_WITHIN_MS)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        messages += decode_messages(answer.body)
    return messages


@pytest.mark.parametrize("flush", ["sync", "async"])
async def test_nothing_acknowledged_is_lost_when_a_broker_is_killed_under_load(tmp_path: Path, flush: str) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    load = Load()
    with OurBroker(tmp_path / "store", flush) as broker:
        for _ in range(ROUNDS):
            await load.run(broker, chance.uniform(0.3, 1.0))
            broker.start()
            assert "Traceback" not in broker.output()
        found = await read_all(broker)
        assert broker.stop() == 0
    print(f"{len(load.acknowledged)} acknowledged, {len(found)} found, {len(load.tried)} tried")
    lost = load.acknowledged.items() - found.items()
    assert not lost, f"{len(lost)} of {len(load.acknowledged)} acknowledged messages"
    assert found.keys() <= load.tried
    store = MessageStore.open(tmp_path / "store", StoreConfig())
    try:
        assert store.verify().is_sound
    finally:
        store.close()
