"""The project's middleware around listeners that consume from a real broker: ours, then Apache's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.utils.decorators import sync_and_async_middleware

from consumer.assembly import make_consumer
from consumer.listener import Declaration, Registry
from tests.journeys.conftest import Cluster
from tests.journeys.shop import WARM_UP, Shop
from tests.support.waiting import eventually

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]

DELAYS = {ZeroDivisionError: 1}
SEEN: list[tuple[str, str]] = []


@sync_and_async_middleware
def noting(consume: Any) -> Callable[[Any], Any]:
    """Notes each message before and after its listener; what the listener raises passes through."""
    name = consume.listener.name.rpartition(".")[2]

    async def around_async(message: Any) -> Any:
        SEEN.append((f"{name} begins", message.text))
        result = await consume(message)
        SEEN.append((f"{name} ends", message.text))
        return result

    def around(message: Any) -> Any:
        SEEN.append((f"{name} begins", message.text))
        result = consume(message)
        SEEN.append((f"{name} ends", message.text))
        return result

    return around_async if consume.is_async else around


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
async def test_each_message_passes_the_middleware_and_one_that_fails_comes_again_through_it(
    cluster: Cluster, fresh: Callable[[str], str], settings: Any, is_async: bool
) -> None:
    settings.CONSUMER_MIDDLEWARE = [
        "consumer.middleware.logging_context.logging_context",
        "consumer.middleware.connections.database_connections",
        f"{__name__}.noting",
    ]
    failed = threading.Event()
    shop = Shop(cluster, fresh("orders"), fresh("billing"))
    await shop.open()

    def consumed(message: Any) -> None:
        if message.text == "bad" and not failed.is_set():
            failed.set()
            raise ZeroDivisionError

    def plain(message: Any) -> None:
        consumed(message)

    async def not_plain(message: Any) -> None:
        await asyncio.sleep(0)
        consumed(message)

    listen: Callable[..., Any] = not_plain if is_async else plain
    registry = Registry()
    registry.declare(Declaration(shop.group, shop.topic, listen, {"consume_from": "first", "retry_delays_s": DELAYS}))
    registry.freeze()
    assert not registry.faults
    SEEN.clear()
    consumer = make_consumer(registry.groups[shop.group], cluster.namesrv)
    await consumer.start()
    try:
        await shop.send("good", "bad")
        name = listen.__name__
        wanted = {(f"{name} ends", text) for text in (WARM_UP, "good", "bad")}
        await eventually(lambda: wanted <= set(SEEN), within_s=180)
        assert SEEN.count((f"{name} begins", "bad")) >= 2, "the failed attempt passed it, too"
        assert SEEN.count((f"{name} ends", "bad")) == 1
    finally:
        await consumer.stop()
        await shop.close()
