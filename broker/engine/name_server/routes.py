"""The name server's answers: GET_ROUTEINFO_BY_TOPIC (105), GET_BROKER_CLUSTER_INFO (106), topic lists (206, 224, 304,
311-313), and the broker's permission to write in the routes (205, 327).

Name server and broker are one process and know one broker, so a route is the topic's settings and this broker's
address; a new topic is in the routes at once. Maps are written with quoted keys, which every client reads. A wiped
permission to write lasts until it is added again or the process ends; the broker goes on taking what is sent to it.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.engine.config import BrokerConfig
from broker.engine.name_server.kv_config import KVConfig
from broker.engine.serving.requests import Request
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.route import MASTER_ID, BrokerData, ClusterInfo, QueueData, TopicList, TopicRouteData
from remoting.wire.bodies.topics import PERM_INHERIT, PERM_WRITE
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.name_server import BrokerNameHeader
from remoting.wire.headers.routes import ClusterHeader, GetRouteHeader
from remoting.wire.headers.typed import read_header

# The namespace of the name server's values that tools keep a topic's order configuration in (`NamesrvUtil`).
ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"
# RocketMQ's `TopicSysFlag`.
UNIT_FLAG = 0x1
UNIT_SUB_FLAG = 0x2


class Routes:
    def __init__(self, topics: Topics, kv_config: KVConfig, config: BrokerConfig) -> None:
        self._topics = topics
        self._kv_config = kv_config
        self._config = config
        self._broker = BrokerData(
            broker_addrs={MASTER_ID: config.address}, broker_name=config.name, cluster=config.cluster
        )
        self._is_writable = True

    def of_topic(self, request: Request) -> Command:
        """Raises MessageError for an unknown topic."""
        header = read_header(GetRouteHeader, request.command.ext_fields)
        topic = self._topics.find(header.topic)
        if topic is None:
            raise MessageError(
                f"No topic route info in name server for the topic: {header.topic}", ResponseCode.TOPIC_NOT_EXIST
            )
        queues = QueueData(
            broker_name=self._config.name,
            perm=topic.perm & self._perm,
            read_queue_nums=topic.read_queue_nums,
            topic_sys_flag=topic.topic_sys_flag,
            write_queue_nums=topic.write_queue_nums,
        )
        route = TopicRouteData(broker_datas=[self._broker], queue_datas=[queues])
        if self._config.routes_order_config:
            route.order_topic_conf = self._kv_config.get(ORDER_TOPIC_CONFIG, header.topic)
        return response(request.command, ResponseCode.SUCCESS, body=write_body(route))

    def of_cluster(self, request: Request) -> Command:
        info = ClusterInfo(
            broker_addr_table={self._config.name: self._broker},
            cluster_addr_table={self._config.cluster: [self._config.name]},
        )
        return response(request.command, ResponseCode.SUCCESS, body=write_body(info))

    def all_topics(self, request: Request) -> Command:
        """Raises MessageError where `enableAllTopicList` is off."""
        _check_listed(self._config.lists_all_topics)
        return _topic_list(request, self._names())

    def topics_of_cluster(self, request: Request) -> Command:
        """Raises MessageError where `enableTopicList` is off."""
        _check_listed(self._config.lists_topics)
        header = read_header(ClusterHeader, request.command.ext_fields)
        return _topic_list(request, self._names() if header.cluster == self._config.cluster else [])

    def system_topics(self, request: Request) -> Command:
        """Answers 304 with the names of cluster and broker; the caller asks the broker named here for the others."""
        body = TopicList(broker_addr=self._config.address, topic_list=[self._config.cluster, self._config.name])
        return response(request.command, ResponseCode.SUCCESS, body=write_body(body))

    def unit_topics(self, request: Request) -> Command:
        """Answers 311 with the topics of units."""
        return _topic_list(request, self._with_flags(lambda flags: bool(flags & UNIT_FLAG)))

    def unit_subscribed_topics(self, request: Request) -> Command:
        """Answers 312 with the topics that units subscribe to."""
        return _topic_list(request, self._with_flags(lambda flags: bool(flags & UNIT_SUB_FLAG)))

    def unit_subscribed_topics_elsewhere(self, request: Request) -> Command:
        """Answers 313 with those of 312 that are no unit's own."""
        return _topic_list(
            request, self._with_flags(lambda flags: flags & (UNIT_FLAG | UNIT_SUB_FLAG) == UNIT_SUB_FLAG)
        )

    @property
    def _perm(self) -> int:
        """Returns the broker's own permission, less what a tool wiped."""
        perm = self._config.perm | PERM_INHERIT
        return perm if self._is_writable else perm & ~PERM_WRITE

    def wipe_write_permission(self, request: Request) -> Command:
        """Takes the permission to write out of the routes (205).

        Producers go elsewhere as soon as they ask for the route again.
        """
        return self._set_writable(request, "wipeTopicCount", is_writable=False)

    def add_write_permission(self, request: Request) -> Command:
        """Puts the permission to write back into the routes (327)."""
        return self._set_writable(request, "addTopicCount", is_writable=True)

    def _set_writable(self, request: Request, count_name: str, *, is_writable: bool) -> Command:
        header = read_header(BrokerNameHeader, request.command.ext_fields)
        count = 0
        if header.broker_name == self._config.name:
            self._is_writable = is_writable
            count = len(self._names())
        return response(request.command, ResponseCode.SUCCESS, ext_fields={count_name: str(count)})

    def _with_flags(self, wanted: Callable[[int], bool]) -> list[str]:
        _check_listed(self._config.lists_topics)
        topics = self._topics.table.topic_config_table
        return [name for name, topic in topics.items() if wanted(topic.topic_sys_flag)]

    def _names(self) -> list[str]:
        return list(self._topics.table.topic_config_table)


def _check_listed(is_listed: bool) -> None:
    if not is_listed:
        raise MessageError("disable", ResponseCode.SYSTEM_ERROR)


def _topic_list(request: Request, names: list[str]) -> Command:
    return response(request.command, ResponseCode.SUCCESS, body=write_body(TopicList(topic_list=names)))
