"""GET_SUBSCRIPTIONGROUP_CONFIG (352): a consumer group's settings."""

from __future__ import annotations

from broker.engine.groups.group_configs import Groups
from broker.engine.serving.requests import Request
from remoting.wire.bodies.document import write_body
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.groups import GroupHeader
from remoting.wire.headers.typed import read_header


class GetSubscriptionGroupConfig:
    """A group that may be made is made by asking, as RocketMQ does."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def __call__(self, request: Request) -> Command:
        """Raises MessageError for a group that is not there."""
        header = read_header(GroupHeader, request.command.ext_fields)
        group = self._groups.find(header.group)
        if group is None:
            raise MessageError(
                f"No group in this broker. group: {header.group}", ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            )
        return response(request.command, ResponseCode.SUCCESS, body=write_body(group))
