"""GET_TOPIC_CONFIG (351), QUERY_TOPIC_CONSUME_BY_WHO (300): one topic's settings, and the groups that read it."""

from __future__ import annotations

from broker.engine.members import Members
from broker.engine.offsets import Offsets
from broker.engine.requests import Request
from broker.engine.topics import Topics
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import GroupList
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.routes import TopicHeader
from remoting.wire.headers.typed import read_header


class GetTopicConfig:
    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def __call__(self, request: Request) -> Command:
        """Raises MessageError for an unknown topic."""
        header = read_header(TopicHeader, request.command.ext_fields)
        topic = self._topics.find(header.topic)
        if topic is None:
            raise MessageError(f"No topic in this broker. topic: {header.topic}", ResponseCode.TOPIC_NOT_EXIST)
        return response(request.command, ResponseCode.SUCCESS, body=write_body(topic))


class QueryTopicConsumers:
    """Groups online with a subscription to the topic, and those that once committed an offset on it."""

    def __init__(self, members: Members, offsets: Offsets) -> None:
        self._members = members
        self._offsets = offsets

    def __call__(self, request: Request) -> Command:
        header = read_header(TopicHeader, request.command.ext_fields)
        online = [group.group for group in self._members.groups() if header.topic in group.subscriptions]
        groups = list(dict.fromkeys([*online, *self._offsets.groups_of(header.topic)]))
        return response(request.command, ResponseCode.SUCCESS, body=write_body(GroupList(group_list=groups)))
