"""The outbox delivered by a real Celery worker: what was written while no broker was there, and what comes later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from remoting.client.blocking import BlockingPullConsumer
from remoting.client.errors import ClientError
from remoting.client.received_message import ReceivedMessage
from tests.support.hosting_stage import HostingStage
from tests.support.our_broker import OurBroker
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.redis]

TOPIC = "orders"
KEYS = 3
# Beat comes every 5 s, and a message that failed waits longer each time.
DELIVERED_WITHIN_S = 120.0

WRITE = """
from django.db import transaction
from consumer import producer
for commits in (True, False):
    with transaction.atomic():
        for number in range({first}, {first} + 30):
            key = f"key-{{number % 3}}"
            producer.send_by_outbox("orders", {{"number": number, "kept": commits}}, order_key=key, tags=key)
        transaction.set_rollback(not commits)
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostingStage]:
    # Unix socket paths are short.
    folder = tmp_path_factory.mktemp("outbox")
    with RedisServer(folder) as redis, OurBroker(folder / "store", patient=True) as broker:
        yield HostingStage(folder, redis, broker, "examples.shop")


def stored(broker: OurBroker) -> list[ReceivedMessage]:
    """All messages of the topic, queue by queue in order."""
    with BlockingPullConsumer(broker.namesrv, "readers") as consumer:
        return wait_until(lambda: _read(consumer), what="answers to all requests")


def _read(consumer: BlockingPullConsumer) -> list[ReceivedMessage]:
    """Nothing where a request has failed."""
    found: list[ReceivedMessage] = []
    try:
        for queue in consumer.queues(TOPIC):
            offset, end = 0, consumer.max_offset(queue)
            while offset < end:
                result = consumer.pull(queue, offset)
                found += result.messages
                offset = result.next_offset
    except ClientError:
        return []
    return found


def test_what_was_committed_is_delivered_in_order_of_its_keys_once_a_broker_is_there(stage: HostingStage) -> None:
    assert stage.broker.stop() == 0
    with stage.supervised():
        stage.manage("shell", "-c", WRITE.format(first=0))
        wait_until(lambda: stage.rows("SELECT id FROM mq_consumer_outbox WHERE attempts > 0"), what="a first try")
        stage.broker.start()
        wait_until(lambda: _states(stage) == {"sent": 30}, DELIVERED_WITHIN_S, "the delivery")
        stage.manage("shell", "-c", WRITE.format(first=30))
        wait_until(lambda: _states(stage) == {"sent": 60}, DELIVERED_WITHIN_S, "the delivery of what came later")
    messages = stored(stage.broker)
    assert all(message.json()["kept"] for message in messages)
    by_key = {f"key-{key}": [m.json()["number"] for m in messages if m.tags == f"key-{key}"] for key in range(KEYS)}
    # A try that timed out while the broker came up may be stored, too: again, with the same id.
    assert {key: list(dict.fromkeys(numbers)) for key, numbers in by_key.items()} == {
        f"key-{key}": list(range(key, 60, KEYS)) for key in range(KEYS)
    }
    ids = {row[0] for row in stage.rows("SELECT message_id FROM mq_consumer_outbox")}
    assert {message.id for message in messages} == ids
    shown = stage.manage("outbox")
    assert "0 pending, 60 sent, 0 failed" in shown


def _states(stage: HostingStage) -> dict[object, object]:
    return dict(stage.rows("SELECT state, COUNT(*) FROM mq_consumer_outbox GROUP BY state"))  # type: ignore[arg-type]
