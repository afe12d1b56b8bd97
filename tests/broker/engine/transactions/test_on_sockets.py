"""The whole way of a transaction over real sockets: half, silence, check, commit; with and without a scheduler."""

from __future__ import annotations

import asyncio

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.runtime import BrokerRuntime
from remoting.wire.codes import ResponseCode
from remoting.wire.stored_message import decode_message
from tests.support.transaction_client import COMMIT, ROLLBACK, WITHIN_S, TransactionClient

# Checked after 0.2 s, and again every 0.1 s.
# None is given up while a slow disk flushes it.
QUICK = {"transaction_timeout_ms": 200, "transaction_check_interval_ms": 100, "transaction_check_max": 10_000}


@pytest.fixture
async def started(tmp_path):
    """Starts a broker with these settings and gives a client of it."""
    runtimes, clients = [], []

    async def start(**settings) -> TransactionClient:
        config = BrokerConfig(store=tmp_path / "store", port=0, namesrv_port=0, **QUICK, **settings)
        runtimes.append(BrokerRuntime(config))
        await runtimes[-1].start()
        clients.append(await TransactionClient.connect(runtimes[-1].config.address))
        return clients[-1]

    yield start
    for client in clients:
        await client.close()
    for runtime in runtimes:
        await runtime.stop()


async def test_a_producer_that_does_not_say_is_asked_until_it_does(started):
    shop = await started()
    await shop.half(b"one")

    async with asyncio.timeout(WITHIN_S):
        first, second = await shop.asked.get(), await shop.asked.get()
    assert [decode_message(check.body).properties["TRANSACTION_CHECK_TIMES"] for check in (first, second)] == ["1", "2"]
    assert await shop.pull() == []
    assert await shop.end_asked(first, COMMIT) == ResponseCode.SUCCESS
    assert [message.body for message in await shop.pull()] == [b"one"]
    assert await shop.end_asked(second, ROLLBACK) == ResponseCode.SYSTEM_ERROR


@pytest.mark.slow
async def test_without_a_scheduler_commits_work_and_nobody_is_asked(started):
    shop = await started(scheduler="celery")
    silent, told = await shop.half(b"silent"), await shop.half(b"told")
    await asyncio.sleep(1)  # several intervals

    assert shop.asked.empty()
    assert await shop.end_sent(told, COMMIT) == ResponseCode.SUCCESS
    assert await shop.end_sent(silent, ROLLBACK) == ResponseCode.SUCCESS
    assert [message.body for message in await shop.pull()] == [b"told"]


@pytest.mark.slow
async def test_what_is_rolled_back_is_not_asked_for(started):
    shop = await started()
    assert await shop.end_sent(await shop.half(b"ended"), ROLLBACK) == ResponseCode.SUCCESS
    while not shop.asked.empty():  # on a busy machine it was asked for before
        shop.asked.get_nowait()
    await shop.half(b"open")

    async with asyncio.timeout(WITHIN_S):
        checks = [await shop.asked.get() for _ in range(3)]
    assert [decode_message(check.body).body for check in checks] == [b"open"] * 3
    assert await shop.pull() == []
