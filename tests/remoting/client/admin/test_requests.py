from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from remoting.client.admin import Admin
from remoting.client.admin.partial import NotAnswered, ask_each
from remoting.client.admin.requests import ASIDE_BYTES_MIN, Limits, read_aside
from remoting.client.connections import Connections
from remoting.client.errors import BrokerRefused, NotConnected, NotSupported, NoTurn
from remoting.connection import Connection
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from tests.support.answering_server import AnsweringServer
from tests.support.waiting import eventually

MakeAdmin = Callable[..., Admin]


@pytest_asyncio.fixture
async def connections() -> AsyncIterator[Connections]:
    connections = Connections()
    yield connections
    await connections.close()


@pytest.fixture
def make_admin(connections: Connections) -> MakeAdmin:
    return lambda **limits: Admin(connections, 60_000, limits=Limits(**limits))


class HeldAnswers:
    """Keeps the server's answers to a code until `release`."""

    def __init__(self, server: AnsweringServer, *codes: int) -> None:
        self.held: list[tuple[Connection, Command]] = []
        for code in codes:
            server.answers[code] = self._hold

    def _hold(self, connection: Connection, request: Command) -> None:
        self.held.append((connection, request))

    def release(self) -> None:
        held, self.held = self.held, []
        for connection, request in held:
            connection.send(response(request, 0, ext_fields={"offset": "5"}, body=b"{}"))


async def test_of_one_servers_requests_few_are_in_flight_at_once(
    server: AnsweringServer, make_admin: MakeAdmin
) -> None:
    admin = make_admin(per_server=3)
    held = HeldAnswers(server, RequestCode.GET_MAX_OFFSET)
    calls = asyncio.gather(*(admin.offsets.max(server.address, "orders", number) for number in range(7)))
    seen = []
    while len(seen) < 7:
        await eventually(lambda: bool(held.held))
        seen += held.held
        assert len(held.held) <= 3
        held.release()
    assert await calls == [5] * 7


async def test_clients_that_do_not_answer_keep_no_other_call_waiting(
    server: AnsweringServer, make_admin: MakeAdmin
) -> None:
    admin = make_admin(per_server=1, relayed_per_server=2)
    held = HeldAnswers(server, RequestCode.GET_CONSUMER_RUNNING_INFO)
    server.answers[RequestCode.GET_MAX_OFFSET] = lambda _, request: response(request, 0, ext_fields={"offset": "5"})
    asking = [
        asyncio.ensure_future(admin.clients.running_info(server.address, "billing", str(number))) for number in range(3)
    ]
    await eventually(lambda: len(held.held) == 2)
    assert await admin.offsets.max(server.address, "orders", 0) == 5
    assert len(held.held) == 2
    held.release()
    await eventually(lambda: len(held.held) == 1)
    held.release()
    await asyncio.gather(*asking)


async def test_a_slow_server_keeps_no_other_server_waiting(server: AnsweringServer, make_admin: MakeAdmin) -> None:
    admin = make_admin(per_server=1, in_total=2)
    held = HeldAnswers(server, RequestCode.GET_MAX_OFFSET)
    slow = asyncio.gather(*(admin.offsets.max(server.address, "orders", number) for number in range(3)))
    await eventually(lambda: bool(held.held))
    async with AnsweringServer() as quick:
        quick.answers[RequestCode.GET_MAX_OFFSET] = lambda _, request: response(request, 0, ext_fields={"offset": "7"})
        assert await admin.offsets.max(quick.address, "orders", 0) == 7
    for _ in range(3):
        await eventually(lambda: bool(held.held))
        held.release()
    assert await slow == [5, 5, 5]


async def test_who_gets_no_turn_hears_that_nothing_was_sent(server: AnsweringServer, make_admin: MakeAdmin) -> None:
    admin = make_admin(per_server=1, turn_timeout_ms=20)
    held = HeldAnswers(server, RequestCode.GET_MAX_OFFSET)
    first = asyncio.ensure_future(admin.offsets.max(server.address, "orders", 0))
    await eventually(lambda: bool(held.held))
    with pytest.raises(NoTurn, match="nothing was sent"):
        await admin.offsets.max(server.address, "orders", 1)
    assert len(server.asked) == 1
    held.release()
    assert await first == 5


async def test_what_a_server_does_not_know_is_an_error_that_names_code_and_version(
    server: AnsweringServer, make_admin: MakeAdmin
) -> None:
    def refuse(_: Connection, request: Command) -> Command:
        answer = response(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, " request type 30 not supported")
        answer.version = 409
        return answer

    server.answers[RequestCode.GET_MAX_OFFSET] = refuse
    with pytest.raises(
        NotSupported, match=r"GET_MAX_OFFSET \(30\) .*is not supported by this broker: .* 4\.9\.8"
    ) as caught:
        await make_admin().offsets.max(server.address, "orders", 0)
    assert caught.value.version == 409
    assert caught.value.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


@pytest.mark.slow
async def test_one_call_to_many_keeps_each_ones_answer_or_error(
    server: AnsweringServer, connections: Connections, make_admin: MakeAdmin
) -> None:
    admin = make_admin()
    server.answers[RequestCode.GET_MAX_OFFSET] = lambda _, request: response(request, 0, ext_fields={"offset": "5"})
    async with AnsweringServer() as refusing, AnsweringServer() as silent:
        refusing.refuse(RequestCode.GET_MAX_OFFSET, ResponseCode.TOPIC_NOT_EXIST)
        held = HeldAnswers(silent, RequestCode.GET_MAX_OFFSET)
        addresses = [server.address, refusing.address, silent.address, "127.0.0.1:1"]
        for address in addresses[:3]:
            await connections.get(address, 60_000)
        partial = await ask_each(addresses, lambda address: admin.offsets.max(address, "orders", 0), timeout_ms=10_000)
        assert len(held.held) == 1
    assert partial.answers == {server.address: 5}
    assert {address: type(error) for address, error in partial.errors.items()} == {
        refusing.address: BrokerRefused,
        silent.address: NotAnswered,
        "127.0.0.1:1": NotConnected,
    }
    assert not partial.is_complete
    with pytest.raises((BrokerRefused, NotConnected, NotAnswered)):
        partial.complete()


async def test_a_mistake_of_our_own_is_raised_and_no_servers_error() -> None:
    async def call(_: str) -> int:
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        await ask_each(["a", "b"], call)


async def test_a_large_answer_is_read_while_the_event_loop_goes_on() -> None:
    threads = []

    def read(body: bytes) -> int:
        threads.append(threading.current_thread())
        return len(body)

    assert await read_aside(read, b"x") == 1
    assert await read_aside(read, bytes(ASIDE_BYTES_MIN)) == ASIDE_BYTES_MIN
    assert [thread is threading.main_thread() for thread in threads] == [True, False]
