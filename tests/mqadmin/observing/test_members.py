"""What members are asked through a broker that has few places for such questions."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from mqadmin.observing.gateway import MemberPlace
from mqadmin.observing.gateway.members import MemberRequests
from remoting.client.admin import Admin
from remoting.client.connections import Connections
from remoting.connection import Connection
from remoting.wire.bodies.running_info import ConsumerRunningInfo, write_running_info
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from tests.support.answering_server import AnsweringServer

SILENT = [MemberPlace("billing", f"silent@{number}") for number in range(2)]
ANSWERING = [MemberPlace("billing", f"answering@{number}") for number in range(3)]


@pytest_asyncio.fixture
async def server() -> AsyncIterator[AnsweringServer]:
    """A broker whose members named silent do not answer."""
    async with AnsweringServer() as server:
        server.answers[RequestCode.GET_CONSUMER_RUNNING_INFO] = _relay
        yield server


@pytest_asyncio.fixture
async def requests() -> AsyncIterator[MemberRequests]:
    connections = Connections()
    yield MemberRequests(Admin(connections))
    await connections.close()


def _relay(_: Connection, request: Command) -> Command | None:
    if request.ext_fields["clientId"].startswith("silent"):
        return None
    return response(request, ResponseCode.SUCCESS, body=write_running_info(ConsumerRunningInfo()))


async def test_whom_silent_members_kept_from_being_asked_is_not_called_silent(
    server: AnsweringServer, requests: MemberRequests
) -> None:
    asked = await requests.ask([*SILENT, *ANSWERING], [server.address], round_s=0.4, turns_s=0.2)
    assert set(asked.reasons) == set(SILENT)
    assert asked.told == {}
    assert len(server.asked) == 2


async def test_who_is_asked_before_the_silent_ones_answers_in_the_same_round(
    server: AnsweringServer, requests: MemberRequests
) -> None:
    asked = await requests.ask([*ANSWERING, *SILENT], [server.address], round_s=0.4, turns_s=0.2)
    assert (set(asked.told), set(asked.reasons)) == (set(ANSWERING), set(SILENT))


async def test_a_member_that_is_silent_to_one_broker_is_not_asked_through_another(
    server: AnsweringServer, requests: MemberRequests
) -> None:
    server.refuse(RequestCode.GET_CONSUMER_RUNNING_INFO, ResponseCode.CONSUME_MSG_TIMEOUT, "consumer <x> Timeout")
    async with AnsweringServer() as other:
        asked = await requests.ask(SILENT[:1], [server.address, other.address])
        assert "Timeout" in asked.reasons[SILENT[0]]
        assert other.asked == []


async def test_a_member_is_asked_through_the_broker_that_it_is_connected_to_and_that_is_there(
    server: AnsweringServer, requests: MemberRequests
) -> None:
    async with AnsweringServer() as away:
        pass
    async with AnsweringServer() as other:
        other.refuse(RequestCode.GET_CONSUMER_RUNNING_INFO, ResponseCode.SYSTEM_ERROR, "The Consumer not online")
        asked = await requests.ask(ANSWERING[:1], [away.address, other.address, server.address])
    assert set(asked.told) == set(ANSWERING[:1])
