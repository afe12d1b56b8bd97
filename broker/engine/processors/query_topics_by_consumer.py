"""QUERY_TOPICS_BY_CONSUMER (343): the topics on which a group committed an offset."""

from __future__ import annotations

from broker.engine.groups.offsets import Offsets
from broker.engine.serving.requests import Request
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.route import TopicList
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.groups import GroupHeader
from remoting.wire.headers.typed import read_header


class QueryTopicsByConsumer:
    def __init__(self, offsets: Offsets, broker_addr: str) -> None:
        self._offsets = offsets
        self._broker_addr = broker_addr

    def __call__(self, request: Request) -> Command:
        header = read_header(GroupHeader, request.command.ext_fields)
        body = TopicList(broker_addr=self._broker_addr, topic_list=self._offsets.topics_of(header.group))
        return response(request.command, ResponseCode.SUCCESS, body=write_body(body))
