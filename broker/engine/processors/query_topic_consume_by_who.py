"""QUERY_TOPIC_CONSUME_BY_WHO (300): the groups that consume a topic."""

from __future__ import annotations

from broker.engine.groups.members import Members
from broker.engine.groups.offsets import Offsets
from broker.engine.serving.requests import Request
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import GroupList
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.routes import TopicHeader
from remoting.wire.headers.typed import read_header


class QueryTopicConsumeByWho:
    def __init__(self, members: Members, offsets: Offsets) -> None:
        self._members = members
        self._offsets = offsets

    def __call__(self, request: Request) -> Command:
        """Answers with the groups that subscribe to the topic now, and those that once committed an offset on it."""
        header = read_header(TopicHeader, request.command.ext_fields)
        online = [group.group for group in self._members.groups() if header.topic in group.subscriptions]
        groups = list(dict.fromkeys([*online, *self._offsets.groups_of(header.topic)]))
        return response(request.command, ResponseCode.SUCCESS, body=write_body(GroupList(group_list=groups)))
