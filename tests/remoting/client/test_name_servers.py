from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from remoting.client.connections import Connections
from remoting.client.name_servers import NameServers, NameServersUnreachable
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from tests.support.answering_server import AnsweringServer
from tests.support.children import free_port


@pytest_asyncio.fixture
async def connections() -> AsyncIterator[Connections]:
    connections = Connections()
    yield connections
    await connections.close()


def question() -> Command:
    return Command(code=RequestCode.GET_BROKER_CLUSTER_INFO)


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a:1", ("a:1",)),
        ("a:1;b:2", ("a:1", "b:2")),
        ("a:1,b:2", ("a:1", "b:2")),
        (" a:1 ; b:2;; ", ("a:1", "b:2")),
        ("a:1;a:1", ("a:1",)),
        (["a:1", "b:2"], ("a:1", "b:2")),
    ],
)
async def test_addresses_are_taken_from_text_and_lists(
    connections: Connections, text: str | list[str], addresses: tuple[str, ...]
) -> None:
    assert NameServers(text, connections).addresses == addresses


@pytest.mark.parametrize("nothing", ["", " ; ", []])
async def test_no_address_is_refused(connections: Connections, nothing: str | list[str]) -> None:
    with pytest.raises(ValueError, match="give one as host:port"):
        NameServers(nothing, connections)


async def test_one_name_server_is_preferred(connections: Connections) -> None:
    async with AnsweringServer() as first, AnsweringServer() as second:
        servers = NameServers([first.address, second.address], connections)
        for _ in range(5):
            await servers.request(question())
        assert sorted([len(first.asked), len(second.asked)]) == [0, 5]


async def test_when_it_fails_the_next_one_is_requested_and_preferred_from_then_on(
    connections: Connections, caplog: pytest.LogCaptureFixture
) -> None:
    async with AnsweringServer() as alive:
        dead = f"127.0.0.1:{free_port()}"
        servers = NameServers([dead, alive.address], connections, first_index=0)
        assert (await servers.request(question())).code == 0
        assert (await servers.request(question())).code == 0
        assert caplog.text.count(f"name server {alive.address} is used now") == 1


async def test_one_that_stays_silent_is_passed_over(connections: Connections) -> None:
    async with AnsweringServer() as silent, AnsweringServer() as alive:
        silent.answers[RequestCode.GET_BROKER_CLUSTER_INFO] = lambda *_: None
        servers = NameServers([silent.address, alive.address], connections, first_index=0)
        assert (await servers.request(question(), 50)).code == 0
        assert len(alive.asked) == 1


async def test_a_refusal_is_an_answer(connections: Connections) -> None:
    async with AnsweringServer() as first, AnsweringServer() as second:
        first.refuse(RequestCode.GET_BROKER_CLUSTER_INFO, 17)
        servers = NameServers([first.address, second.address], connections, first_index=0)
        assert (await servers.request(question())).code == 17
        assert second.asked == []


async def test_when_none_answers_all_are_named_with_their_reasons(connections: Connections) -> None:
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(3)]
    with pytest.raises(NameServersUnreachable) as caught:
        await NameServers(addresses, connections).request(question())
    assert all(f"{address}: Connection refused" in str(caught.value) for address in addresses)
    assert "start one, or correct the address" in str(caught.value)
    assert len(caught.value.failures) == 3
