from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from remoting.client.config import ClientConfig
from remoting.client.connections import Connections
from remoting.client.errors import BrokerRefused, RouteNotFound
from remoting.client.name_servers import NameServers, NameServersUnreachable
from remoting.client.routes import Routes
from remoting.wire.bodies.route import TopicRouteData
from remoting.wire.codes import RequestCode
from remoting.wire.command import response
from remoting.wire.errors import BodyError
from remoting.wire.names import AUTO_CREATE_TOPIC
from tests.support.answering_server import AnsweringServer, route_to
from tests.support.waiting import eventually

Table = dict[str, TopicRouteData]


@pytest.fixture
def table() -> Table:
    return {"orders": route_to(("a", "10.0.0.1:10911"))}


@pytest_asyncio.fixture
async def namesrv(table: Table) -> AsyncIterator[AnsweringServer]:
    async with AnsweringServer() as server:
        server.serve_routes(table)
        yield server


@pytest_asyncio.fixture
async def routes(namesrv: AnsweringServer) -> AsyncIterator[Routes]:
    connections = Connections()
    routes = Routes(NameServers(namesrv.address, connections))
    yield routes
    await routes.close()
    await connections.close()


@pytest.fixture
def no_age(routes: Routes) -> None:
    """Expired routes may be requested again at once."""
    routes.config = ClientConfig(route_expired_age_s=0.0)


async def test_a_route_is_requested_once_and_cached(routes: Routes, namesrv: AnsweringServer) -> None:
    first, second = await asyncio.gather(routes.get("orders"), routes.get("orders"))
    assert first == second == await routes.get("orders")
    assert [request.ext_fields for request in namesrv.asked] == [{"topic": "orders", "acceptStandardJsonOnly": "true"}]


async def test_queues_and_addresses_come_from_the_route(routes: Routes) -> None:
    assert len(await routes.publish_queues("orders")) == 4
    assert len(await routes.subscribe_queues("orders")) == 4
    assert routes.master_address("a") == "10.0.0.1:10911"
    assert routes.master_address("b") is None
    assert routes.broker_addresses(with_slaves=False) == {"10.0.0.1:10911"}


async def test_an_unknown_topic_is_named_with_name_server_and_remedy(routes: Routes, namesrv: AnsweringServer) -> None:
    with pytest.raises(RouteNotFound, match=f"{namesrv.address} know no route to topic 'missing': create the topic"):
        await routes.get("missing")
    with pytest.raises(RouteNotFound, match="'missing'"):
        await routes.publish_queues("missing")


async def test_a_topic_that_does_not_exist_yet_is_sent_to_where_the_template_lives(
    routes: Routes, table: Table, namesrv: AnsweringServer
) -> None:
    table[AUTO_CREATE_TOPIC] = route_to(("a", "10.0.0.1:10911"), queues=8, perm=7)
    routes.config = ClientConfig(route_expired_age_s=3600)
    queues = await routes.publish_queues("new")
    assert [(queue.topic, queue.queue_id) for queue in queues] == [("new", number) for number in range(4)]
    asked = len(namesrv.asked)
    await routes.publish_queues("new")
    assert len(namesrv.asked) == asked
    with pytest.raises(RouteNotFound):
        await routes.subscribe_queues("new")


async def test_the_real_route_replaces_the_template_when_the_topic_exists(
    routes: Routes, table: Table, no_age: None
) -> None:
    table[AUTO_CREATE_TOPIC] = route_to(("a", "10.0.0.1:10911"))
    changed: list[str] = []
    routes.changed.append(changed.append)
    assert len(await routes.publish_queues("new")) == 4
    table["new"] = route_to(("a", "10.0.0.1:10911"), queues=2)
    assert len(await routes.publish_queues("new")) == 2
    assert changed == [AUTO_CREATE_TOPIC, "new"]


async def test_callbacks_get_changes_and_only_changes(routes: Routes, table: Table) -> None:
    changed: list[str] = []
    routes.changed.append(changed.append)
    await routes.get("orders")
    await routes.refresh_all()
    assert changed == ["orders"]
    table["orders"] = route_to(("b", "10.0.0.2:10911"), ("a", "10.0.0.1:10911"))
    await routes.refresh_all()
    assert changed == ["orders", "orders"]
    table["orders"] = route_to(("a", "10.0.0.1:10911"), ("b", "10.0.0.2:10911"))
    await routes.refresh_all()
    assert changed == ["orders", "orders"]
    assert routes.master_address("b") == "10.0.0.2:10911"


async def test_callbacks_get_a_topic_in_use_that_appears_later(routes: Routes, table: Table) -> None:
    changed: list[str] = []
    routes.changed.append(changed.append)
    routes.use("soon")
    await routes.refresh_all()
    assert changed == []
    table["soon"] = route_to(("a", "10.0.0.1:10911"))
    await routes.refresh_all()
    assert changed == ["soon"]
    assert routes.known("soon") is not None


async def test_routes_in_use_are_refreshed_by_themselves(routes: Routes, table: Table) -> None:
    routes.config = ClientConfig(route_refresh_interval_s=0.01)
    await routes.get("orders")
    routes.start()
    table["orders"] = route_to(("b", "10.0.0.2:10911"))
    await eventually(lambda: routes.master_address("b"))
    assert routes.master_address("a") is None


async def test_a_route_stays_while_no_name_server_answers(
    routes: Routes, namesrv: AnsweringServer, no_age: None, caplog: pytest.LogCaptureFixture
) -> None:
    await routes.get("orders")
    await namesrv.stop()
    await routes.refresh_all()
    assert "no name server answers" in caplog.text
    routes.expire("orders")
    assert len(await routes.publish_queues("orders")) == 4
    with pytest.raises(NameServersUnreachable):
        await routes.get("other")


async def test_a_route_stays_when_a_fresh_name_server_does_not_know_it_yet(
    routes: Routes, table: Table, no_age: None
) -> None:
    await routes.get("orders")
    table.clear()
    await routes.refresh_all()
    routes.expire("orders")
    assert len(await routes.subscribe_queues("orders")) == 4


async def test_an_expired_route_is_requested_again_but_not_more_than_once_a_second(
    routes: Routes, namesrv: AnsweringServer
) -> None:
    routes.config = ClientConfig(route_expired_age_s=3600)
    await routes.get("orders")
    routes.expire("orders")
    await routes.publish_queues("orders")
    assert len(namesrv.asked) == 1
    routes.config = ClientConfig(route_expired_age_s=0.0)
    await routes.publish_queues("orders")
    await routes.publish_queues("orders")
    assert len(namesrv.asked) == 2


async def test_a_topic_that_is_not_used_any_more_is_forgotten(routes: Routes) -> None:
    await routes.get("orders")
    routes.config = ClientConfig(route_unused_s=-1.0)
    await routes.refresh_all()
    assert routes.known("orders") is None
    assert routes.broker_addresses(with_slaves=True) == set()


async def test_slaves_are_used_for_reading_and_by_their_ids(routes: Routes, table: Table) -> None:
    table["orders"].broker_datas[0].broker_addrs = {"0": "m:1", "2": "s:2"}
    await routes.get("orders")
    assert routes.read_address("a") == "m:1"
    assert routes.read_address("a", 1) == "s:2"
    assert routes.read_address("a", 7) == "m:1"
    assert routes.read_address("nobody") is None
    assert routes.broker_addresses(with_slaves=True) == {"m:1", "s:2"}


async def test_another_refusal_is_raised_as_it_is(routes: Routes, namesrv: AnsweringServer) -> None:
    namesrv.refuse(RequestCode.GET_ROUTEINFO_BY_TOPIC, 1, "name server not ready")
    with pytest.raises(BrokerRefused, match=r"topic 'orders'.*SYSTEM_ERROR.*name server not ready"):
        await routes.get("orders")


async def test_a_route_that_cannot_be_read_is_an_error_and_leaves_the_old_one(
    routes: Routes, namesrv: AnsweringServer, caplog: pytest.LogCaptureFixture
) -> None:
    await routes.get("orders")
    namesrv.answers[RequestCode.GET_ROUTEINFO_BY_TOPIC] = lambda _, request: response(request, 0, body=b"{")
    with pytest.raises(BodyError):
        await routes.refresh("orders")
    await routes.refresh_all()
    assert "cannot be refreshed" in caplog.text
    assert routes.known("orders") is not None


async def test_closing_ends_a_question_under_way(routes: Routes, namesrv: AnsweringServer) -> None:
    namesrv.answers[RequestCode.GET_ROUTEINFO_BY_TOPIC] = lambda *_: None
    asking = asyncio.create_task(routes.get("orders"))
    await eventually(lambda: namesrv.asked)
    await routes.close()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_listener_that_fails_does_not_end_the_refresh(
    routes: Routes, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(topic: str) -> None:
        raise ValueError("listener")

    routes.config = ClientConfig(route_refresh_interval_s=0.01)
    await routes.get("orders")
    routes.changed.append(fail)
    routes.start()
    table["orders"] = route_to(("b", "10.0.0.2:10911"))
    await eventually(lambda: "ValueError: listener" in caplog.text)
    routes.changed.clear()
    table["orders"] = route_to(("c", "10.0.0.3:10911"))
    await eventually(lambda: routes.master_address("c"))
