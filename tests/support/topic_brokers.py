"""A name server and brokers that have topics, over real sockets, on a thread of their own: for verbs on topics."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from remoting.connection import Connection
from remoting.wire.bodies.consume_stats import ConsumeStats, QueueProgress, write_consume_stats
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import GroupList, ProducerInfo, ProducerTable
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import BrokerData, ClusterInfo
from remoting.wire.bodies.topics import TopicConfig, TopicOffset, TopicTable, write_topic_stats
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.topics import CreateTopicHeader
from remoting.wire.headers.typed import read_header
from tests.support.answering_server import AnsweringServer, route_to

CLUSTER = "DefaultCluster"


@dataclass
class TopicBroker:
    """`lag` by group, of every topic; `producers`: client ids by producer group.

    A change is refused with the words `refusal`, or costs the connection.
    """

    name: str
    topics: dict[str, TopicConfig] = field(default_factory=dict)
    message_count: int = 0
    lag: dict[str, int] = field(default_factory=dict)
    producers: dict[str, list[str]] = field(default_factory=dict)
    refusal: str = ""
    hangs_up: bool = False
    server: AnsweringServer = field(default_factory=AnsweringServer)

    def __post_init__(self) -> None:
        code = RequestCode
        self.server.answers = {
            code.GET_TOPIC_CONFIG: self._config,
            code.GET_ALL_TOPIC_CONFIG: self._all,
            code.UPDATE_AND_CREATE_TOPIC: self._create,
            code.DELETE_TOPIC_IN_BROKER: self._delete,
            code.GET_TOPIC_STATS_INFO: self._stats,
            code.QUERY_TOPIC_CONSUME_BY_WHO: self._readers,
            code.GET_CONSUME_STATS: self._progress,
            code.GET_ALL_PRODUCER_INFO: self._producers,
        }

    def _config(self, _: Connection, request: Command) -> Command:
        topic = self.topics.get(request.ext_fields["topic"])
        if topic is None:
            return response(request, ResponseCode.TOPIC_NOT_EXIST, "No topic in this broker.")
        return response(request, ResponseCode.SUCCESS, body=write_body(topic))

    def _all(self, _: Connection, request: Command) -> Command:
        table = TopicTable(topic_config_table=dict(self.topics))
        return response(request, ResponseCode.SUCCESS, body=write_body(table))

    def _change(self, connection: Connection, request: Command) -> Command | None:
        if self.hangs_up:
            connection.close()
            return None
        if self.refusal:
            return response(request, ResponseCode.NO_PERMISSION, self.refusal)
        return response(request, ResponseCode.SUCCESS)

    def _create(self, connection: Connection, request: Command) -> Command | None:
        answer = self._change(connection, request)
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            header = read_header(CreateTopicHeader, request.ext_fields)
            self.topics[header.topic] = TopicConfig(
                topic_name=header.topic,
                read_queue_nums=header.read_queue_nums,
                write_queue_nums=header.write_queue_nums,
                perm=header.perm,
                order=header.order,
            )
        return answer

    def _delete(self, connection: Connection, request: Command) -> Command | None:
        answer = self._change(connection, request)
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            self.topics.pop(request.ext_fields["topic"], None)
        return answer

    def _stats(self, _: Connection, request: Command) -> Command:
        queue = MessageQueue(request.ext_fields["topic"], self.name, 0)
        ends = {queue: TopicOffset(min_offset=5, max_offset=5 + self.message_count)}
        return response(request, ResponseCode.SUCCESS, body=write_topic_stats(ends))

    def _readers(self, _: Connection, request: Command) -> Command:
        return response(request, ResponseCode.SUCCESS, body=write_body(GroupList(group_list=list(self.lag))))

    def _producers(self, _: Connection, request: Command) -> Command:
        table = {group: [ProducerInfo(client_id=one) for one in clients] for group, clients in self.producers.items()}
        return response(request, ResponseCode.SUCCESS, body=write_body(ProducerTable(data=table)))

    def _progress(self, _: Connection, request: Command) -> Command:
        lag = self.lag[request.ext_fields["consumerGroup"]]
        queue = MessageQueue(request.ext_fields["topic"], self.name, 0)
        progress = ConsumeStats(queues={queue: QueueProgress(broker_offset=100, consumer_offset=100 - lag)})
        return response(request, ResponseCode.SUCCESS, body=write_consume_stats(progress))


B = TypeVar("B", bound=TopicBroker)


class PlayedBrokers(Generic[B]):
    """Starts on entering. `namesrv` is the name server's "host:port"; it routes a topic while a broker has it."""

    def __init__(self, *names: str, broker_class: type[B]) -> None:
        self.brokers = {name: broker_class(name) for name in names}
        self.name_server = AnsweringServer()
        self.name_server.answers = {
            RequestCode.GET_BROKER_CLUSTER_INFO: self._cluster,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
        }
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        for server in self._servers:
            self._call(server.start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            self._call(server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __getitem__(self, name: str) -> B:
        return self.brokers[name]

    @property
    def namesrv(self) -> str:
        return self.name_server.address

    def vanish(self, name: str) -> None:
        """The broker is gone, and the name server does not know it yet."""
        self._call(self.brokers[name].server.stop())

    def answer_name_server(self, code: int, **fields: object) -> None:
        """Lets the name server answer a request with success and these ext fields."""
        self.name_server.succeed(code, **fields)

    def asked_of_name_server(self) -> list[int]:
        return self.name_server.asked_codes()

    @property
    def _servers(self) -> list[AnsweringServer]:
        return [*(broker.server for broker in self.brokers.values()), self.name_server]

    def _call(self, call: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(call, self._loop).result(60)

    def _cluster(self, _: Connection, request: Command) -> Command:
        brokers = {
            name: BrokerData(broker_addrs={"0": broker.server.address}, broker_name=name, cluster=CLUSTER)
            for name, broker in self.brokers.items()
        }
        info = ClusterInfo(broker_addr_table=brokers, cluster_addr_table={CLUSTER: list(brokers)})
        return response(request, ResponseCode.SUCCESS, body=write_body(info))

    def _route(self, _: Connection, request: Command) -> Command:
        topic = request.ext_fields["topic"]
        there = [(one.name, one.server.address) for one in self.brokers.values() if topic in one.topics]
        if not there:
            return response(request, ResponseCode.TOPIC_NOT_EXIST, "No topic route info")
        return response(request, ResponseCode.SUCCESS, body=write_body(route_to(*there)))


class TopicBrokers(PlayedBrokers[TopicBroker]):
    """Brokers that have topics."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names, broker_class=TopicBroker)
