from __future__ import annotations

import ipaddress
import os
import re

import pytest

from remoting.client.instance import ClientInstance, local_address, make_client_id
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from tests.support.answering_server import AnsweringServer
from tests.support.waiting import cancelled_after, eventually


def test_a_client_id_shows_address_and_process_and_is_never_the_same_twice() -> None:
    ids = {make_client_id("10.0.0.5") for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(rf"10\.0\.0\.5@{os.getpid()}#\d+", client_id) for client_id in ids)


def test_our_address_is_one() -> None:
    ipaddress.IPv4Address(local_address())


async def test_an_instance_that_was_never_started_can_be_closed() -> None:
    await ClientInstance("127.0.0.1:9876").close()


@pytest.mark.parametrize("turns", range(1, 8))
async def test_an_instance_whose_closing_is_cancelled_leaves_no_socket_open(turns: int) -> None:
    async with AnsweringServer() as server:
        instance = ClientInstance(server.address)
        instance.start()
        await instance.connections.request(server.address, Command(code=RequestCode.HEART_BEAT))
        await cancelled_after(instance.close(), turns)
        await eventually(lambda: not server.connections)
