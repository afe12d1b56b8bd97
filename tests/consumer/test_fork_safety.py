"""What was made before a fork is harmless after it, in the child and in the parent."""

from __future__ import annotations

import asyncio

import pytest

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.push_consumer import PushConsumer
from tests.support.children import free_port
from tests.support.forked import exit_code_of


def made() -> PushConsumer:
    config = ConsumerConfig(f"127.0.0.1:{free_port()}", "billing")
    return PushConsumer(config, {"orders": Listener("orders", print)})


def test_a_consumer_that_was_made_before_a_fork_does_not_start_in_the_child_and_says_so() -> None:
    consumer = made()

    def start() -> None:
        with pytest.raises(RuntimeError, match="made before a fork: make it in the process that runs it"):
            asyncio.run(consumer.start())

    assert exit_code_of(start) == 0


def test_a_child_of_a_process_that_consumes_can_consume_itself() -> None:
    async def start_and_stop() -> None:
        consumer = made()
        await consumer.start()
        await consumer.stop()

    async def with_a_child() -> int:
        consumer = made()
        await consumer.start()
        try:
            return await asyncio.to_thread(exit_code_of, lambda: asyncio.run(start_and_stop()))
        finally:
            await consumer.stop()

    assert asyncio.run(with_a_child()) == 0
