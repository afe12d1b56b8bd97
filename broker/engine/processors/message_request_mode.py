"""SET_MESSAGE_REQUEST_MODE (401), GET_ALL_MESSAGE_REQUEST_MODE (402): how a group gets its messages
(RocketMQ's `QueryAssignmentProcessor`). The mode is always PULL: this broker has no POP.
"""

from __future__ import annotations

from broker.engine.groups.group_configs import Groups
from broker.engine.groups.request_modes import RequestModes
from broker.engine.serving.requests import Request
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.assignment import PULL, RequestMode
from remoting.wire.bodies.document import read_body, write_body
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.names import is_retry_topic


class SetMessageRequestMode:
    def __init__(self, topics: Topics, groups: Groups, modes: RequestModes) -> None:
        self._topics = topics
        self._groups = groups
        self._modes = modes

    def __call__(self, request: Request) -> Command:
        """Raises WireError."""
        mode = read_body(RequestMode, request.command.body)
        if is_retry_topic(mode.topic):
            raise MessageError("retry topic is not allowed to set mode", ResponseCode.NO_PERMISSION)
        if self._topics.find(mode.topic) is None:
            raise MessageError(f"topic[{mode.topic}] not exist", ResponseCode.TOPIC_NOT_EXIST)
        if self._groups.find(mode.consumer_group) is None:
            raise MessageError(
                f"subscription group does not exist: {mode.consumer_group}", ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            )
        if mode.mode != PULL:
            raise MessageError(
                f"this broker has no {mode.mode}; leave {mode.topic} at PULL for {mode.consumer_group}",
                ResponseCode.NO_PERMISSION,
            )
        self._modes.put(mode)
        return response(request.command, ResponseCode.SUCCESS)


class GetAllMessageRequestMode:
    def __init__(self, modes: RequestModes) -> None:
        self._modes = modes

    def __call__(self, request: Request) -> Command:
        return response(request.command, ResponseCode.SUCCESS, body=write_body(self._modes.table))
