from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from remoting.client.config import ClientConfig
from remoting.client.errors import GroupTaken
from remoting.client.instance import ClientInstance
from remoting.wire.bodies.heartbeat import ConsumerData, HeartbeatData, SubscriptionData, read_heartbeat
from remoting.wire.bodies.route import TopicRouteData
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from tests.support.answering_server import AnsweringServer, route_to
from tests.support.waiting import eventually

BEAT = RequestCode.HEART_BEAT
Table = dict[str, TopicRouteData]


@pytest_asyncio.fixture
async def master() -> AsyncIterator[AnsweringServer]:
    async with AnsweringServer() as server:
        yield server


@pytest_asyncio.fixture
async def slave() -> AsyncIterator[AnsweringServer]:
    async with AnsweringServer() as server:
        yield server


@pytest.fixture
def table(master: AnsweringServer, slave: AnsweringServer) -> Table:
    route = route_to(("a", master.address))
    route.broker_datas[0].broker_addrs["1"] = slave.address
    return {"orders": route}


@pytest_asyncio.fixture
async def instance(table: Table) -> AsyncIterator[ClientInstance]:
    async with AnsweringServer() as namesrv:
        namesrv.serve_routes(table)
        instance = ClientInstance(namesrv.address, client_id="me")
        await instance.routes.get("orders")
        yield instance
        await instance.close()


def billing() -> ConsumerData:
    return ConsumerData(group_name="billing", subscription_data_set=[SubscriptionData(topic="orders")])


def beats(server: AnsweringServer) -> list[HeartbeatData]:
    return [read_heartbeat(request.body) for request in server.of_code(BEAT)]


async def test_heartbeats_of_a_consumer_go_to_masters_and_slaves_with_all_groups(
    instance: ClientInstance, master: AnsweringServer, slave: AnsweringServer
) -> None:
    instance.heartbeats.add_consumer("billing", billing)
    instance.heartbeats.add_producer("senders")
    assert await instance.heartbeats.send_now() == {master.address, slave.address}
    for server in (master, slave):
        (beat,) = beats(server)
        assert beat.client_id == "me"
        assert beat.consumer_data_set == [billing()]
        assert [producer.group_name for producer in beat.producer_data_set] == ["senders"]


async def test_heartbeats_of_a_producer_alone_go_to_masters_only(
    instance: ClientInstance, master: AnsweringServer, slave: AnsweringServer
) -> None:
    instance.heartbeats.add_producer("senders")
    assert await instance.heartbeats.send_now() == {master.address}
    assert slave.made == 0


async def test_a_second_consumer_of_a_group_in_one_client_is_refused(instance: ClientInstance) -> None:
    instance.heartbeats.add_consumer("billing", billing)
    with pytest.raises(
        GroupTaken, match="has a consumer of group 'billing' already: give the second one another group"
    ):
        instance.heartbeats.add_consumer("billing", billing)
    await instance.heartbeats.remove_consumer("billing")
    instance.heartbeats.add_consumer("billing", billing)


async def test_a_client_without_groups_says_nothing(instance: ClientInstance, master: AnsweringServer) -> None:
    assert await instance.heartbeats.send_now() == set()
    await instance.connections.request(master.address, Command(code=RequestCode.GET_MAX_OFFSET))
    assert beats(master) == []


async def test_every_heartbeat_has_the_state_of_its_moment(instance: ClientInstance, master: AnsweringServer) -> None:
    entry = billing()
    instance.heartbeats.add_consumer("billing", lambda: entry)
    await instance.heartbeats.send_now()
    entry = ConsumerData(group_name="billing", subscription_data_set=[SubscriptionData(topic="refunds")])
    await instance.heartbeats.send_now()
    topics = [beat.consumer_data_set[0].subscription_data_set[0].topic for beat in beats(master)]
    assert topics == ["orders", "refunds"]


async def test_a_new_connection_to_a_broker_begins_with_a_heartbeat(
    instance: ClientInstance, master: AnsweringServer
) -> None:
    instance.heartbeats.add_consumer("billing", billing)
    pull = Command(code=RequestCode.PULL_MESSAGE)
    await instance.connections.request(master.address, pull)
    assert master.asked_codes() == [BEAT, RequestCode.PULL_MESSAGE]
    master.connections[0].abort()
    await eventually(lambda: not instance.connections.is_open(master.address))
    await instance.connections.request(master.address, pull)
    assert master.asked_codes() == [BEAT, RequestCode.PULL_MESSAGE] * 2


async def test_heartbeats_are_sent_after_a_second_and_then_every_interval(
    instance: ClientInstance, master: AnsweringServer
) -> None:
    instance.heartbeats.config = ClientConfig(heartbeat_first_after_s=0.01, heartbeat_interval_s=0.02)
    instance.heartbeats.add_consumer("billing", billing)
    instance.start()
    await eventually(lambda: len(beats(master)) >= 3)


async def test_unregistering_goes_to_every_connected_broker_and_later_heartbeats_leave_the_group_out(
    instance: ClientInstance, master: AnsweringServer, slave: AnsweringServer
) -> None:
    instance.heartbeats.add_consumer("billing", billing)
    instance.heartbeats.add_producer("senders")
    await instance.heartbeats.send_now()
    await instance.heartbeats.remove_consumer("billing")
    for server in (master, slave):
        (goodbye,) = server.of_code(RequestCode.UNREGISTER_CLIENT)
        assert goodbye.ext_fields == {"clientID": "me", "consumerGroup": "billing"}
    await instance.heartbeats.send_now()
    assert beats(master)[-1].consumer_data_set == []


async def test_unregistering_is_not_sent_to_brokers_without_a_connection(
    instance: ClientInstance, master: AnsweringServer
) -> None:
    instance.heartbeats.add_producer("senders")
    await instance.heartbeats.remove_producer("senders")
    assert master.made == 0


async def test_a_hanging_broker_does_not_delay_unregistering(instance: ClientInstance, master: AnsweringServer) -> None:
    instance.heartbeats.config = ClientConfig(unregister_timeout_ms=50)
    instance.heartbeats.add_producer("senders")
    await instance.heartbeats.send_now()
    master.answers[RequestCode.UNREGISTER_CLIENT] = lambda *_: None
    async with asyncio.timeout(60):
        await instance.heartbeats.remove_producer("senders")


async def test_a_broker_that_refuses_or_is_gone_is_said_once_and_again_when_it_is_back(
    instance: ClientInstance, master: AnsweringServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    instance.heartbeats.add_producer("senders")
    master.refuse(BEAT, 1, "no")
    for _ in range(3):
        assert await instance.heartbeats.send_now() == set()
    del master.answers[BEAT]
    assert await instance.heartbeats.send_now() == {master.address}
    await master.stop()
    for _ in range(3):
        assert await instance.heartbeats.send_now() == set()
    lines = [record.getMessage() for record in caplog.records if "heartbeat" in record.getMessage()]
    assert len(lines) == 3
    assert "did not accept a heartbeat" in lines[0]
    assert "accepts heartbeats again" in lines[1]
    assert "did not accept a heartbeat" in lines[2]


async def test_a_consumer_that_cannot_describe_itself_does_not_end_the_heartbeats(
    instance: ClientInstance,
    master: AnsweringServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    knows_itself = False

    def describe() -> ConsumerData:
        if not knows_itself:
            raise ValueError("who am I?")
        return billing()

    instance.heartbeats.config = ClientConfig(heartbeat_first_after_s=0.01, heartbeat_interval_s=0.01)
    instance.heartbeats.add_producer("senders")
    await instance.heartbeats.send_now()
    instance.heartbeats.add_consumer("billing", describe)
    instance.start()
    await eventually(lambda: "who am I?" in caplog.text)
    knows_itself = True
    await eventually(lambda: beats(master)[-1].consumer_data_set == [billing()])
