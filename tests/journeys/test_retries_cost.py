"""What reading retries asks of a broker: by what is new, whatever waits. The figures of docs/DEADLETTERS.md.

TORTURE=1 pytest -s tests/journeys/test_retries_cost.py      100,000 that wait, too; the figures are printed
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from mqadmin.observing.gateway import Cost, Costs, Failures, Fate, Gateway, ask
from mqadmin.observing.gateway import gateway as gateway_module
from mqadmin.observing.gateway.sending import TargetQueue
from mqadmin.retries.indexing import index_step
from mqadmin.retries.models import FailedAttempt
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.properties import Property
from tests.support import console_rows as seed
from tests.support.our_broker import OurBroker

pytestmark = [pytest.mark.journey, pytest.mark.django_db]

WAITING = (0, 1_000, 100_000) if os.environ.get("TORTURE") else (0, 1_000)
TOPIC = "%RETRY%billing"
# In two hours.
LEVEL = "18"
BODY = b"x" * 200
AT_ONCE = 500
# Pulls of 32, entries of 512, and a request for where the queues end; a page more where a reading breaks off.
REQUESTS_PER_MESSAGE = 1 / 32 + 1 / 512
# Besides the body: head, names and properties of a message, and the JSON of its queue entry.
BYTES_PER_MESSAGE = 600
IDLE_REQUESTS, IDLE_BYTES = 1, 4096


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OurBroker]:
    with OurBroker(tmp_path / "store", "async", patient=True) as broker:
        yield broker


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Counts what every gateway of the test asks."""
    costs = Costs()
    monkeypatch.setattr(gateway_module, "Costs", lambda: costs)
    return costs


def make_wait(broker: OurBroker, count: int) -> None:
    """Sends what has failed once, as a member sends it back."""

    async def send(gateway: Gateway) -> None:
        topic = TopicConfig(topic_name=TOPIC, read_queue_nums=1, write_queue_nums=1)
        assert await gateway.topics.create({broker.broker: topic}) == {}
        (queue, *_) = await gateway.sending.queues(TOPIC, Failures())
        for first in range(0, count, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, count))
            outcomes = await asyncio.gather(*(send_one(gateway, queue, number) for number in numbers))
            assert {one.fate for one in outcomes} <= {Fate.STORED}

    def send_one(gateway: Gateway, queue: TargetQueue, number: int):  # type: ignore[no-untyped-def]
        properties = {Property.UNIQ_KEY: f"m{number}", Property.RETRY_TOPIC: "orders", Property.DELAY: LEVEL}
        return gateway.sending.send(queue, TOPIC, BODY, properties)

    ask(broker.namesrv, send)


@pytest.mark.parametrize("waiting", WAITING)
def test_a_cycle_costs_by_what_is_new_and_nothing_by_what_waits(broker: OurBroker, costs: Costs, waiting: int) -> None:
    now = timezone.now()
    cluster = seed.make_cluster("there", now=now, namesrv=broker.namesrv)
    seed.make_broker(cluster, "broker-a", now=now, address=broker.broker)
    make_wait(broker, waiting)
    costs.take()
    cycles = 0
    while True:
        cycles += 1
        index_step(cluster)
        if FailedAttempt.objects.count() >= waiting:
            break
    new = costs.take().get(broker.broker, Cost())
    assert new.request_count <= cycles * IDLE_REQUESTS + waiting * REQUESTS_PER_MESSAGE + 3 * (waiting // 1024 + 1)
    assert new.byte_count <= cycles * IDLE_BYTES + waiting * (len(BODY) + BYTES_PER_MESSAGE)
    assert index_step(cluster) == 0
    idle = costs.take()[broker.broker]
    assert (idle.request_count, idle.error_count) == (IDLE_REQUESTS, 0)
    assert idle.byte_count <= IDLE_BYTES
    print(f"{waiting} wait: {cycles} cycles read them, {new}; each further cycle: {idle}")
