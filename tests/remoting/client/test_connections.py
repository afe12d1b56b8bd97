from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from remoting.client.config import ClientConfig
from remoting.client.connections import Connections
from remoting.client.errors import ConnectionLost, NotConnected, RequestTimedOut
from remoting.connection import Connection
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from tests.support.answering_server import AnsweringServer
from tests.support.children import free_port
from tests.support.waiting import cancelled_after, eventually


@pytest_asyncio.fixture
async def server() -> AsyncIterator[AnsweringServer]:
    async with AnsweringServer() as server:
        yield server


@pytest_asyncio.fixture
async def connections() -> AsyncIterator[Connections]:
    connections = Connections()
    yield connections
    await connections.close()


def beat() -> Command:
    return Command(code=RequestCode.HEART_BEAT)


async def test_all_requests_to_an_address_share_one_connection_however_many_begin_at_once(
    server: AnsweringServer, connections: Connections
) -> None:
    answers = await asyncio.gather(*(connections.request(server.address, beat()) for _ in range(50)))
    assert {answer.code for answer in answers} == {0}
    assert server.made == 1


async def test_each_address_has_its_own_connection(server: AnsweringServer, connections: Connections) -> None:
    async with AnsweringServer() as other:
        await connections.request(server.address, beat())
        await connections.request(other.address, beat())
        assert (server.made, other.made) == (1, 1)


async def test_we_say_that_we_are_python_and_new_enough(server: AnsweringServer, connections: Connections) -> None:
    await connections.request(server.address, beat())
    assert server.asked[0].language == 3
    assert server.asked[0].version == 479


async def test_a_refusal_is_an_answer_like_any_other(server: AnsweringServer, connections: Connections) -> None:
    server.refuse(RequestCode.HEART_BEAT, 1, "no")
    answer = await connections.request(server.address, beat())
    assert (answer.code, answer.remark) == (1, "no")


async def test_a_refused_connection_names_the_address_and_the_reason(connections: Connections) -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(NotConnected, match=f"^no connection to {address}: Connection refused$"):
        await connections.request(address, beat())
    with pytest.raises(NotConnected):
        await connections.oneway(address, beat())


@pytest.mark.parametrize("address", ["", "localhost", "host:", ":1", "host:port", "host:70000", "host:-1", "host:１"])
async def test_a_text_that_is_no_address_is_refused(connections: Connections, address: str) -> None:
    with pytest.raises(NotConnected, match="not of the form host:port"):
        await connections.request(address, beat())


async def test_a_caller_that_is_cancelled_while_connecting_takes_nothing_from_the_others(
    server: AnsweringServer, connections: Connections
) -> None:
    first = asyncio.create_task(connections.request(server.address, beat()))
    second = asyncio.create_task(connections.request(server.address, beat()))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).code == 0
    assert server.made == 1


async def test_a_lost_connection_fails_waiting_requests_and_is_made_anew_for_the_next(
    server: AnsweringServer, connections: Connections
) -> None:
    lost: list[str] = []
    connections.connection_lost = lost.append
    server.answers[RequestCode.PULL_MESSAGE] = lambda connection, _: connection.abort()
    with pytest.raises(ConnectionLost, match="lost while waiting for the answer to PULL_MESSAGE"):
        await connections.request(server.address, Command(code=RequestCode.PULL_MESSAGE))
    assert lost == [server.address]
    assert (await connections.request(server.address, beat())).code == 0
    assert server.made == 2


async def test_a_server_that_was_restarted_is_found_again(server: AnsweringServer, connections: Connections) -> None:
    await connections.request(server.address, beat())
    await server.stop()
    await eventually(lambda: not connections.is_open(server.address))
    with pytest.raises(NotConnected):
        await connections.request(server.address, beat())
    await server.start()
    assert (await connections.request(server.address, beat())).code == 0


@pytest.mark.slow
async def test_a_time_out_names_address_request_and_time_and_spares_a_connection_that_is_alive(
    server: AnsweringServer, connections: Connections
) -> None:
    connections.config = ClientConfig(silent_s=600)
    server.answers[RequestCode.PULL_MESSAGE] = lambda *_: None
    pull = Command(code=RequestCode.PULL_MESSAGE)
    connection = await connections.get(server.address, 60_000)
    waiting = asyncio.create_task(connections.request(server.address, pull, 2500))
    await eventually(lambda: server.asked)
    # As if nothing had come for as long as a connection may be silent; what comes from here on is the beats' answers.
    connection.last_active_s -= connections.config.silent_s
    while not waiting.done():
        await connections.request(server.address, beat(), 60_000)
        await asyncio.sleep(0.02)
    with pytest.raises(RequestTimedOut, match=f"{server.address} did not answer PULL_MESSAGE within 2500 ms"):
        await waiting
    assert connections.is_open(server.address)
    assert server.made == 1


@pytest.mark.slow
async def test_a_time_out_ends_a_connection_on_which_nothing_comes(
    server: AnsweringServer, connections: Connections
) -> None:
    connections.config = ClientConfig(silent_s=600)
    server.answers[RequestCode.PULL_MESSAGE] = lambda *_: None
    await connections.request(server.address, beat())
    with pytest.raises(RequestTimedOut):
        await connections.request(server.address, Command(code=RequestCode.PULL_MESSAGE), 50)
    assert connections.is_open(server.address)
    connections.config = ClientConfig(silent_s=2.0)
    with pytest.raises(RequestTimedOut):
        await connections.request(server.address, Command(code=RequestCode.PULL_MESSAGE), 2000)
    assert not connections.is_open(server.address)
    assert (await connections.request(server.address, beat())).code == 0


async def test_the_time_covers_connecting_too(connections: Connections) -> None:
    # TEST-NET-1: routed nowhere; some networks refuse at once instead of staying silent.
    connections.config = ClientConfig(connect_timeout_ms=600_000)
    async with asyncio.timeout(60):
        with pytest.raises(NotConnected):
            await connections.request("192.0.2.1:9876", beat(), 100)


async def test_go_away_is_followed_by_one_more_try_on_a_new_connection(
    server: AnsweringServer, connections: Connections
) -> None:
    """A stopping 5.x server says so; nothing was done yet."""
    connections.config = ClientConfig(silent_s=600)
    parked: list[tuple[Connection, Command]] = []
    server.answers[RequestCode.PULL_MESSAGE] = lambda connection, request: parked.append((connection, request))
    pull = asyncio.create_task(connections.request(server.address, Command(code=RequestCode.PULL_MESSAGE), 60_000))
    await eventually(lambda: parked)
    codes = iter([ResponseCode.GO_AWAY, ResponseCode.SUCCESS])
    server.answers[RequestCode.HEART_BEAT] = lambda _, request: response(request, next(codes))
    assert (await connections.request(server.address, beat(), 60_000)).code == 0
    assert server.made == 2
    connection, request = parked[0]
    connection.send(response(request, 19))
    assert (await pull).code == 19


async def test_go_away_twice_is_the_answer(server: AnsweringServer, connections: Connections) -> None:
    server.refuse(RequestCode.HEART_BEAT, ResponseCode.GO_AWAY)
    assert (await connections.request(server.address, beat())).code == ResponseCode.GO_AWAY
    assert len(server.asked) == 2


async def test_requests_of_servers_go_to_their_handlers(server: AnsweringServer) -> None:
    heard: list[Command] = []

    async def later(_: Connection, request: Command) -> Command:
        await asyncio.sleep(0)
        return response(request, 0, body=b"later")

    connections = Connections(
        {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: lambda _, request: heard.append(request),
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: lambda _, request: response(request, 0, body=b"now"),
            RequestCode.GET_CONSUMER_RUNNING_INFO: later,
        }
    )
    await connections.request(server.address, beat())
    (connection,) = server.connections
    connection.requester.send_oneway(Command(code=40, ext_fields={"consumerGroup": "g"}))
    assert bytes((await connection.request(Command(code=221), 60_000)).body) == b"now"
    assert bytes((await connection.request(Command(code=307), 60_000)).body) == b"later"
    assert [request.ext_fields for request in heard] == [{"consumerGroup": "g"}]
    await connections.close()


async def test_a_request_without_a_handler_gets_rocketmqs_own_response(
    server: AnsweringServer, connections: Connections
) -> None:
    await connections.request(server.address, beat())
    (connection,) = server.connections
    answer = await connection.request(Command(code=4711), 60_000)
    assert (answer.code, answer.remark) == (3, " request type 4711 not supported")


async def test_a_handler_that_fails_is_an_answer_and_a_line_in_the_log(
    server: AnsweringServer, connections: Connections, caplog: pytest.LogCaptureFixture
) -> None:
    def now(_: Connection, request: Command) -> Command:
        raise ValueError("now")

    async def later(_: Connection, request: Command) -> Command:
        raise ValueError("later")

    connections.on_request.update({1: now, 2: later})
    await connections.request(server.address, beat())
    (connection,) = server.connections
    for code, word in ((1, "now"), (2, "later")):
        answer = await connection.request(Command(code=code), 60_000)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert word in (answer.remark or "")
        assert f"ValueError: {word}" in caplog.text


async def test_handlers_at_work_are_bounded(server: AnsweringServer, connections: Connections) -> None:
    connections.config = ClientConfig(handler_tasks_max=2)
    release = asyncio.Event()

    async def wait(_: Connection, request: Command) -> Command:
        await release.wait()
        return response(request, 0)

    connections.on_request[1] = wait
    await connections.request(server.address, beat())
    (connection,) = server.connections
    asked = [asyncio.ensure_future(connection.request(Command(code=1), 60_000)) for _ in range(3)]
    assert (await asked[2]).code == ResponseCode.SYSTEM_BUSY
    release.set()
    assert [(await one).code for one in asked[:2]] == [0, 0]


async def test_requests_of_the_connected_callback_arrive_before_the_first_request(server: AnsweringServer) -> None:
    def greet(_: str, connection: Connection) -> None:
        connection.requester.send_oneway(Command(code=46))

    connections = Connections(connected=greet)
    await connections.request(server.address, beat())
    assert server.asked_codes() == [46, 34]
    await connections.close()


async def test_an_idle_connection_is_closed_without_being_called_lost(
    server: AnsweringServer, connections: Connections
) -> None:
    connections.config = ClientConfig(idle_scan_interval_s=0.02)
    lost: list[str] = []
    connections.connection_lost = lost.append
    await connections.request(server.address, beat())
    connections.config = ClientConfig(idle_close_s=0.05, idle_scan_interval_s=0.02)
    await eventually(lambda: not connections.is_open(server.address))
    assert lost == []
    connections.config = ClientConfig()
    assert (await connections.request(server.address, beat())).code == 0


@pytest.mark.slow
async def test_a_connection_with_a_parked_request_is_not_idle(
    server: AnsweringServer, connections: Connections
) -> None:
    connections.config = ClientConfig(idle_scan_interval_s=0.01)
    server.answers[RequestCode.PULL_MESSAGE] = lambda *_: None
    await connections.get(server.address, 60_000)
    connections.config = ClientConfig(idle_close_s=0.02, idle_scan_interval_s=0.01, silent_s=10.0)
    with pytest.raises(RequestTimedOut):
        await connections.request(server.address, Command(code=RequestCode.PULL_MESSAGE), 1000)
    assert server.made == 1


async def test_closing_fails_waiting_requests_and_leaves_no_task(server: AnsweringServer) -> None:
    before = asyncio.all_tasks()
    connections = Connections()
    server.answers[RequestCode.PULL_MESSAGE] = lambda *_: None
    pull = asyncio.create_task(connections.request(server.address, Command(code=RequestCode.PULL_MESSAGE), 60_000))
    await eventually(lambda: server.asked)
    await connections.close()
    with pytest.raises(ConnectionLost):
        await pull
    await eventually(lambda: not server.connections)
    assert asyncio.all_tasks() - before == set()
    with pytest.raises(NotConnected, match="this client was closed"):
        await connections.request(server.address, beat())


@pytest.mark.parametrize("turns", range(1, 8))
async def test_closing_that_is_cancelled_leaves_no_socket_open(server: AnsweringServer, turns: int) -> None:
    connections = Connections()
    async with AnsweringServer() as other:
        await connections.request(server.address, beat())
        connecting = asyncio.create_task(connections.get(other.address))
        await asyncio.sleep(0)
        await cancelled_after(connections.close(), turns)
        await asyncio.gather(connecting, return_exceptions=True)
        await eventually(lambda: not (server.connections or other.connections))


@pytest.mark.slow
async def test_senders_wait_for_a_server_that_does_not_read(
    connections: Connections,
) -> None:
    connections.config = ClientConfig(write_buffer_bytes_max=1_000_000)
    # The kernel takes the connection; nobody accepts it.
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        await connections.get(address, 60_000)
        body = bytes(4_000_000)
        sends = [connections.oneway(address, Command(code=10, body=body), 300) for _ in range(20)]
        results = await asyncio.gather(*sends, return_exceptions=True)
        assert any(isinstance(result, RequestTimedOut) for result in results)
        await connections.close()
    await asyncio.sleep(0)
