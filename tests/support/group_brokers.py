"""Brokers that have topics and groups, over real sockets, on a thread of their own: for verbs on groups."""

from __future__ import annotations

from dataclasses import dataclass, field

from remoting.connection import Connection
from remoting.wire.bodies.consume_stats import ConsumeStats, QueueProgress, write_consume_stats
from remoting.wire.bodies.document import read_body, write_body
from remoting.wire.bodies.groups import (
    ClientConnection,
    ConsumerConnection,
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
)
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicOffset, write_topic_stats
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from tests.support.topic_brokers import PlayedBrokers, TopicBroker


@dataclass
class GroupBroker(TopicBroker):
    """`members` are client ids, of every group. `offsets_cleaned` are the groups whose progress was deleted, too."""

    groups: dict[str, SubscriptionGroupConfig] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)
    offsets_cleaned: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        code = RequestCode
        self.server.answers |= {
            code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self._table,
            code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self._create_group,
            code.DELETE_SUBSCRIPTIONGROUP: self._delete_group,
            code.GET_CONSUMER_CONNECTION_LIST: self._members,
            code.GET_CONSUME_STATS: self._group_progress,
            code.GET_TOPIC_STATS_INFO: self._topic_stats,
        }

    def _table(self, _: Connection, request: Command) -> Command:
        table = SubscriptionGroupTable(subscription_group_table=dict(self.groups))
        return response(request, ResponseCode.SUCCESS, body=write_body(table))

    def _create_group(self, connection: Connection, request: Command) -> Command | None:
        answer = self._change(connection, request)
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            config = read_body(SubscriptionGroupConfig, request.body)
            self.groups[config.group_name] = config
        return answer

    def _delete_group(self, connection: Connection, request: Command) -> Command | None:
        answer = self._change(connection, request)
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            self.groups.pop(request.ext_fields["groupName"], None)
            if request.ext_fields["cleanOffset"] == "true":
                self.offsets_cleaned.append(request.ext_fields["groupName"])
        return answer

    def _members(self, _: Connection, request: Command) -> Command:
        if not self.members:
            return response(request, ResponseCode.CONSUMER_NOT_ONLINE, "the consumer group not online")
        found = ConsumerConnection(connection_set=[ClientConnection(client_id=one) for one in self.members])
        return response(request, ResponseCode.SUCCESS, body=write_body(found))

    def _group_progress(self, _: Connection, request: Command) -> Command:
        lag = self.lag.get(request.ext_fields["consumerGroup"], 0)
        queue = MessageQueue("orders", self.name, 0)
        progress = ConsumeStats(queues={queue: QueueProgress(broker_offset=100, consumer_offset=100 - lag)})
        return response(request, ResponseCode.SUCCESS, body=write_consume_stats(progress))

    def _topic_stats(self, _: Connection, request: Command) -> Command:
        topic = request.ext_fields["topic"]
        if topic not in self.topics:
            return response(request, ResponseCode.TOPIC_NOT_EXIST, f"topic {topic} not exist")
        ends = {MessageQueue(topic, self.name, 0): TopicOffset(min_offset=5, max_offset=5 + self.message_count)}
        return response(request, ResponseCode.SUCCESS, body=write_topic_stats(ends))


class GroupBrokers(PlayedBrokers[GroupBroker]):
    """Brokers that have topics and groups."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names, broker_class=GroupBroker)
