"""The bell that a worker's children hear."""

from __future__ import annotations

import asyncio
import os

import pytest

from broker.stop_bell import StopBell


@pytest.fixture
def bell():
    bell = StopBell()
    yield bell
    bell.close()


async def test_bell_wakes_everybody_who_waits_and_those_who_come_later(bell):
    waiting = asyncio.create_task(bell.wait())
    await asyncio.sleep(0)
    assert not bell.has_rung
    bell.ring()

    await asyncio.wait_for(waiting, 1)
    await asyncio.wait_for(bell.wait(), 1)
    assert bell.has_rung


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_bell_is_heard_in_a_child_that_was_forked_before(bell):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        asyncio.run(bell.wait())
        os.write(writer, b"heard")
        os._exit(0)
    bell.ring()

    assert os.read(reader, 5) == b"heard"
    assert os.waitpid(child, 0)[1] == 0
    os.close(reader)
    os.close(writer)
