"""QUERY_SUBSCRIPTION_BY_CONSUMER (345): what a group subscribes to on a topic."""

from __future__ import annotations

from broker.engine.groups.members import Members
from broker.engine.serving.requests import Request
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.groups import GroupSubscription
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.groups import GroupTopicHeader
from remoting.wire.headers.typed import read_header


class QuerySubscriptionByConsumer:
    def __init__(self, members: Members) -> None:
        self._members = members

    def __call__(self, request: Request) -> Command:
        """Answers with the subscription, or with none where no member is online or subscribes."""
        header = read_header(GroupTopicHeader, request.command.ext_fields)
        online = self._members.find(header.group)
        found = online.subscriptions.get(header.topic or "") if online is not None else None
        body = GroupSubscription(group=header.group, topic=header.topic, subscription_data=found)
        return response(request.command, ResponseCode.SUCCESS, body=write_body(body))
