"""HEART_BEAT (34): a client's groups and subscriptions (RocketMQ's `ClientManageProcessor`).

Makes the consumer groups that are new and their retry topics. The answer's `version` is what Java clients remember as
the broker's: below V4_1_0 they would refuse to pull by SQL expressions.

Version 2 of the heartbeat leaves out what the broker knows. One that leaves out subscriptions unknown to this broker
(it was started anew) is answered IS_SUB_CHANGE, so that the next one is whole; RocketMQ's broker would wait for it in
vain.
"""

from __future__ import annotations

from broker.engine.groups.group_configs import Groups
from broker.engine.groups.members import Members
from broker.engine.serving.requests import Request
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.heartbeat import ConsumerData, read_heartbeat
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


class HeartBeat:
    def __init__(self, topics: Topics, groups: Groups, members: Members) -> None:
        self._topics = topics
        self._groups = groups
        self._members = members

    def __call__(self, request: Request) -> Command:
        """Raises BodyError."""
        command = request.command
        data = read_heartbeat(command.body)
        for producer in data.producer_data_set:
            self._members.register_producer(command, request.connection, data.client_id, producer.group_name)
        self._make_what_is_new(data.consumer_data_set)
        are_known = [
            self._register(request, data.client_id, consumer, keeps_subscriptions=data.without_sub)
            for consumer in data.consumer_data_set
        ]
        fields = {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"}
        if data.heartbeat_fingerprint:
            groups = [consumer.group_name for consumer in data.consumer_data_set]
            is_changed = self._members.is_sub_change(groups, data.heartbeat_fingerprint)
            fields["IS_SUB_CHANGE"] = "true" if is_changed or not all(are_known) else "false"
        return response(command, ResponseCode.SUCCESS, ext_fields=fields)

    def _make_what_is_new(self, consumers: list[ConsumerData]) -> None:
        """Creates missing groups and retry topics, with one write each, however many there are.

        Raises ConfigFileUnwritable.
        """
        names = [consumer.group_name for consumer in consumers]
        self._groups.make(names)
        known = self._groups.table.subscription_group_table
        self._topics.create_retry_topics(known[name] for name in names if name in known)

    def _register(self, request: Request, client_id: str, data: ConsumerData, *, keeps_subscriptions: bool) -> bool:
        """Registers the client in its groups. A group that may not be created is left out, as RocketMQ 5 does.

        Returns False when the member left out subscriptions that are not known here.
        """
        if not self._groups.exists(data.group_name):
            return True
        return self._members.register_consumer(
            request.command, request.connection, client_id, data, keeps_subscriptions=keeps_subscriptions
        )
