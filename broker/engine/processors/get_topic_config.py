"""GET_TOPIC_CONFIG (351): a topic's settings."""

from __future__ import annotations

from broker.engine.serving.requests import Request
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.document import write_body
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
