"""What was made before a fork is harmless after it, in the child and in the parent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.push_consumer import PushConsumer
from tests.support.children import free_port


def in_a_child(step: Callable[[], None]) -> int:
    """Runs `step` in a forked process; returns its exit status, 0 when it raised nothing."""
    pid = os.fork()
    if pid == 0:
        try:
            step()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(pid, 0)[1]


def made() -> PushConsumer:
    config = ConsumerConfig(f"127.0.0.1:{free_port()}", "billing")
    return PushConsumer(config, {"orders": Listener("orders", print)})


def test_a_consumer_that_was_made_before_a_fork_does_not_start_in_the_child_and_says_so() -> None:
    consumer = made()

    def start() -> None:
        with pytest.raises(RuntimeError, match="made before a fork: make it in the process that runs it"):
            asyncio.run(consumer.start())

    assert in_a_child(start) == 0


def test_a_child_of_a_process_that_consumes_can_consume_itself() -> None:
    async def start_and_stop() -> None:
        consumer = made()
        await consumer.start()
        await consumer.stop()

    async def with_a_child() -> int:
        consumer = made()
        await consumer.start()
        try:
            return await asyncio.to_thread(in_a_child, lambda: asyncio.run(start_and_stop()))
        finally:
            await consumer.stop()

    assert asyncio.run(with_a_child()) == 0
