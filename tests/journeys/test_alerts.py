"""A group stalls on a broker of ours: the alert comes by webhook, is acknowledged, and resolves when it drains."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Result
from mqadmin.alerts import delivering
from mqadmin.alerts.channels.webhook import signature
from mqadmin.alerts.evaluating import evaluate
from mqadmin.alerts.models import Alert, AlertDelivery
from mqadmin.clusters.models import Cluster, Group
from mqadmin.lag import measuring, verdicts
from remoting.client.producer import Producer
from tests.mqadmin.alerts.conftest import Receiver, hook, make_rule, receiver  # noqa: F401 - fixtures
from tests.support.callers import caller
from tests.support.follower import follower_thread
from tests.support.our_broker import OurBroker
from tests.support.patience import answered
from tests.support.waiting import eventually

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]

# A minute is what people wait; the rule is the same.
STALLED_AFTER_S = 2


def look() -> None:
    """As the two tasks do it, one after the other."""
    evaluate(timezone.now())
    for pk, attempt in delivering.DELIVERIES.hand_out(timezone.now()):
        delivering.deliver(pk, attempt, timezone.now())


async def soon(fact: Callable[[], object], what: str) -> None:
    def looked() -> object:
        look()
        return fact()

    await eventually(database_sync_to_async(looked), what=what)


@pytest.fixture
def quick(monkeypatch: Any) -> None:
    for module in (verdicts, measuring):
        monkeypatch.setattr(module, "STALLED_AFTER_S", STALLED_AFTER_S)
    monkeypatch.setattr(verdicts, "SETTLE_S", 1)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OurBroker]:
    with OurBroker(tmp_path / "store", patient=True) as broker:
        yield broker


@pytest.fixture
def followed(quick: None, broker: OurBroker) -> Iterator[Cluster]:
    cluster = Cluster.objects.create(name="local", namesrv=broker.namesrv)
    with follower_thread(stopped_within_s=120):
        yield cluster


async def test_from_a_listener_that_hangs_to_the_end_of_the_alert(
    broker: OurBroker,
    followed: Cluster,
    receiver: Receiver,  # noqa: F811
    hook: Any,  # noqa: F811
    admin_user: Any,
) -> None:
    await database_sync_to_async(make_rule)(hook, verdicts=["stalled"], resolve_s=0)
    goes_on = asyncio.Event()

    async def consume(_: Any) -> None:
        await goes_on.wait()

    producer = Producer(broker.namesrv, "shop", timeout_ms=60_000)
    await producer.start()
    config = ConsumerConfig(broker.namesrv, "billing", start=start_rule("first"))
    member = PushConsumer(config, {"orders": Listener("orders", consume, "*", is_async=True)})
    try:
        for number in range(20):
            await answered(producer.send, "orders", f"order {number}".encode())
        await member.start()
        await soon(lambda: Alert.objects.filter(name="billing", state="firing").exists(), "the alert")
        assert [one["kind"] for one in receiver.documents] == ["fired"]
        ((_path, headers, body),) = receiver.posts
        assert headers["X-Mqadmin-Signature"] == signature("s3cret", int(headers["X-Mqadmin-Timestamp"]), body)
        alert = await database_sync_to_async(Alert.objects.get)(state="firing")
        done = await database_sync_to_async(runner.run)(
            caller(admin_user), "acknowledge_alert", "local", {"alert": alert.pk, "note": "on it"}
        )
        assert isinstance(done, Result)
        assert done.outcome == "done"
        goes_on.set()
        await soon(lambda: Alert.objects.get().state == "resolved", "the end")
        await soon(lambda: not AlertDelivery.objects.filter(state="waiting").exists(), "all told")
        assert [one["kind"] for one in receiver.documents] == ["fired", "resolved"]
        group = await database_sync_to_async(Group.objects.get)(name="billing")
        assert group.lag == 0
    finally:
        goes_on.set()
        await member.stop()
        await producer.close()
