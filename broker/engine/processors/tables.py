"""Whole tables at once: topics (21), groups (201), committed offsets (43), progress of the delay levels (45), the
broker's own topics (305).

Always complete, never in pages; the totals of topics and groups say so to those who ask for pages.
"""

from __future__ import annotations

from broker.engine.groups.group_configs import Groups
from broker.engine.groups.offsets import Offsets
from broker.engine.schedule.delay import DelayedDelivery
from broker.engine.serving.requests import Request
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.route import TopicList
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


class Tables:
    def __init__(self, topics: Topics, groups: Groups, offsets: Offsets, delays: DelayedDelivery) -> None:
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._delays = delays

    def topics(self, request: Request) -> Command:
        total = {"totalTopicNum": str(len(self._topics.table.topic_config_table))}
        return response(request.command, ResponseCode.SUCCESS, ext_fields=total, body=write_body(self._topics.table))

    def groups(self, request: Request) -> Command:
        total = {"totalGroupNum": str(len(self._groups.table.subscription_group_table))}
        return response(request.command, ResponseCode.SUCCESS, ext_fields=total, body=write_body(self._groups.table))

    def offsets(self, request: Request) -> Command:
        return response(request.command, ResponseCode.SUCCESS, body=self._offsets.encode())

    def delays(self, request: Request) -> Command:
        return response(request.command, ResponseCode.SUCCESS, body=self._delays.encoded_progress())

    def system_topics(self, request: Request) -> Command:
        body = TopicList(topic_list=self._topics.system_names())
        return response(request.command, ResponseCode.SUCCESS, body=write_body(body))
