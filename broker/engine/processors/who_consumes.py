"""Who reads what: 300, 343, 345.

QUERY_TOPIC_CONSUME_BY_WHO (300): the groups of a topic. QUERY_TOPICS_BY_CONSUMER (343): the topics of a group.
QUERY_SUBSCRIPTION_BY_CONSUMER (345): what a group asks for on a topic.
"""

from __future__ import annotations

from broker.engine.groups.members import Members
from broker.engine.groups.offsets import Offsets
from broker.engine.serving.requests import Request
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import GroupList, GroupSubscription
from remoting.wire.bodies.route import TopicList
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.groups import GroupHeader, GroupTopicHeader
from remoting.wire.headers.routes import TopicHeader
from remoting.wire.headers.typed import read_header


class WhoConsumes:
    def __init__(self, members: Members, offsets: Offsets, broker_addr: str) -> None:
        self._members = members
        self._offsets = offsets
        self._broker_addr = broker_addr

    def groups_of_topic(self, request: Request) -> Command:
        """Those online with a subscription to it, and those that once committed an offset on it."""
        header = read_header(TopicHeader, request.command.ext_fields)
        online = [group.group for group in self._members.groups() if header.topic in group.subscriptions]
        groups = list(dict.fromkeys([*online, *self._offsets.groups_of(header.topic)]))
        return response(request.command, ResponseCode.SUCCESS, body=write_body(GroupList(group_list=groups)))

    def topics_of_group(self, request: Request) -> Command:
        """Those on which it committed an offset."""
        header = read_header(GroupHeader, request.command.ext_fields)
        body = TopicList(broker_addr=self._broker_addr, topic_list=self._offsets.topics_of(header.group))
        return response(request.command, ResponseCode.SUCCESS, body=write_body(body))

    def subscription(self, request: Request) -> Command:
        """Without one where nobody of the group is online, or the group does not subscribe to the topic."""
        header = read_header(GroupTopicHeader, request.command.ext_fields)
        online = self._members.find(header.group)
        found = online.subscriptions.get(header.topic or "") if online is not None else None
        body = GroupSubscription(group=header.group, topic=header.topic, subscription_data=found)
        return response(request.command, ResponseCode.SUCCESS, body=write_body(body))
