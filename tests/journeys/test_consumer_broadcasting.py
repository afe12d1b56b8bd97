"""A broadcasting group of ours, on our broker and on Apache's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from tests.journeys.conftest import Cluster
from tests.journeys.shop import WARM_UP, Shop
from tests.support.waiting import eventually

pytestmark = [pytest.mark.journey]


@pytest.fixture
async def shop(cluster: Cluster, fresh: Callable[[str], str]) -> AsyncIterator[Shop]:
    opened = Shop(cluster, fresh("shop-prices"), fresh("shop-caches"))
    await opened.open()
    yield opened
    await opened.close()


def into(bodies: list[str]) -> Callable[[Message], Any]:
    async def listen(message: Message) -> None:
        if message.text != WARM_UP:
            bodies.append(message.text)

    return listen


async def test_every_member_gets_everything_and_goes_on_where_it_was(shop: Shop, tmp_path: Path) -> None:
    async def join(bodies: list[str]) -> PushConsumer:
        return await shop.join(into(bodies), is_broadcasting=True, offsets_folder=tmp_path)

    one: list[str] = []
    other: list[str] = []
    first = await join(one)
    await join(other)
    early = [f"early {number}" for number in range(20)]
    await shop.send(*early)
    await eventually(lambda: len(one) == len(other) == 20)
    await shop.leave(first)
    late = [f"late {number}" for number in range(20)]
    await shop.send(*late)
    again: list[str] = []
    await join(again)
    await eventually(lambda: (len(other), len(again)) == (40, 20))
    assert (sorted(one), sorted(other), sorted(again)) == (sorted(early), sorted(early + late), sorted(late))
    assert await shop.committed() == -1  # not even the first message, which is left out
