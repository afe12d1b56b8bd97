"""GET_ALL_TOPIC_CONFIG (21), GET_SYSTEM_TOPIC_LIST_FROM_BROKER (305): all topics with their settings; the names of the
broker's own.

Always complete, never in pages; the total says so to a caller that asks for pages.
"""

from __future__ import annotations

from broker.engine.serving.requests import Request
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.route import TopicList
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


class GetAllTopicConfig:
    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def __call__(self, request: Request) -> Command:
        total = {"totalTopicNum": str(len(self._topics.table.topic_config_table))}
        return response(request.command, ResponseCode.SUCCESS, ext_fields=total, body=write_body(self._topics.table))


class GetSystemTopicListFromBroker:
    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def __call__(self, request: Request) -> Command:
        body = TopicList(topic_list=self._topics.system_names())
        return response(request.command, ResponseCode.SUCCESS, body=write_body(body))
