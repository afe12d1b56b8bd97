"""A client's end: it reads on whatever its own peer reads, and its senders can wait."""

from __future__ import annotations

import asyncio

from remoting.server_connection import (
    ConnectionLimits,
)
from remoting.wire.command import Command
from tests.support.memory_network import Answering, Pipe, Recorder
from tests.support.waiting import eventually


async def test_two_ends_that_send_much_at_once_do_not_wait_for_each_other_for_ever() -> None:
    pipe = Pipe(Recorder(), Answering(50_000), limits=ConnectionLimits(write_buffer_bytes_max=100_000))
    body = bytes(50_000)
    answers = await asyncio.gather(*(pipe.client.request(Command(code=10, body=body), 20_000) for _ in range(200)))
    assert len(answers) == 200


async def test_senders_can_wait_until_the_peer_has_read() -> None:
    pipe = Pipe(Recorder(), Recorder(), limits=ConnectionLimits(write_buffer_bytes_max=1000))
    await pipe.client.drained()
    pipe.to_server.hold()
    pipe.client.requester.send_oneway(Command(code=10, body=bytes(2000)))
    await eventually(lambda: pipe.client.is_write_paused)
    waiting = [asyncio.create_task(pipe.client.drained()) for _ in range(2)]
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in waiting)
    pipe.to_server.release()
    await asyncio.gather(*waiting)


async def test_waiting_for_a_peer_ends_when_it_is_gone() -> None:
    pipe = Pipe(Recorder(), Recorder(), limits=ConnectionLimits(write_buffer_bytes_max=1000))
    pipe.to_server.hold()
    pipe.client.requester.send_oneway(Command(code=10, body=bytes(2000)))
    await eventually(lambda: pipe.client.is_write_paused)
    waiting = asyncio.create_task(pipe.client.drained())
    await asyncio.sleep(0)
    pipe.to_server.cut()
    await waiting
