"""Where the requests of a group go."""

from __future__ import annotations

import pytest

from consumer.engine.brokers import Brokers
from remoting.client.errors import NotConnected
from remoting.client.instance import ClientInstance
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import BrokerData, QueueData, TopicRouteData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.groups import SendMessageBackHeader
from tests.support.memory_broker import BROKER_NAME, MemoryBroker

GROUP = "billing"
QUEUE = MessageQueue("orders", BROKER_NAME, 0)


async def test_without_a_master_offsets_are_asked_of_any_replica_and_locks_and_send_backs_of_none() -> None:
    async with MemoryBroker() as broker:
        broker.create_topic("orders", 1)
        broker.offsets[GROUP, QUEUE] = 5

        def slave_alone(request: Command) -> Command:
            route = TopicRouteData(
                broker_datas=[BrokerData(broker_addrs={"2": broker.address}, broker_name=BROKER_NAME, cluster="c")],
                queue_datas=[QueueData(broker_name=BROKER_NAME, perm=6, read_queue_nums=1, write_queue_nums=1)],
            )
            return response(request, ResponseCode.SUCCESS, body=write_body(route))

        broker.faults[RequestCode.GET_ROUTEINFO_BY_TOPIC] = slave_alone
        client = ClientInstance(broker.namesrv)
        brokers = Brokers(client, GROUP)
        await client.routes.get("orders")
        assert await brokers.committed_offset(QUEUE) == 5
        assert await brokers.max_offset(QUEUE) == 0
        for asked in (
            brokers.lock(BROKER_NAME, [QUEUE]),
            brokers.send_back(BROKER_NAME, SendMessageBackHeader(offset=0, group=GROUP, delay_level=0)),
        ):
            with pytest.raises(NotConnected, match="no route names a master"):
                await asked
        await client.close()


async def test_a_broker_that_no_route_names_is_named() -> None:
    client = ClientInstance("127.0.0.1:1")
    with pytest.raises(NotConnected, match="no route names this broker"):
        await Brokers(client, GROUP).committed_offset(MessageQueue("orders", "gone", 0))
    await client.close()
