"""QUERY_ASSIGNMENT (400), SET_MESSAGE_REQUEST_MODE (401), GET_ALL_MESSAGE_REQUEST_MODE (402): RocketMQ's
`QueryAssignmentProcessor`.

A client that doesn't rebalance itself (`clientRebalance=false`) asks the broker which queues are its own. The answer
is what its own strategy would have given it. The mode is always PULL: this broker has no POP.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.engine.groups.group_configs import Groups
from broker.engine.groups.members import BROADCASTING, Members
from broker.engine.groups.request_modes import RequestModes
from broker.engine.serving.requests import Request
from broker.engine.topics.topic_configs import Topics
from remoting.allocation import STRATEGIES, allocate
from remoting.wire.bodies.assignment import PULL, AssignmentQuery, RequestMode, write_assignments
from remoting.wire.bodies.document import read_body, write_body
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.names import is_retry_topic


class QueryAssignment:
    def __init__(self, topics: Topics, members: Members, broker_name: str) -> None:
        self._topics = topics
        self._members = members
        self._broker_name = broker_name

    def __call__(self, request: Request) -> Command:
        """Raises BodyError."""
        query = read_body(AssignmentQuery, request.command.body)
        return response(request.command, ResponseCode.SUCCESS, body=write_assignments(self._queues(query), PULL))

    def _queues(self, query: AssignmentQuery) -> Iterable[MessageQueue] | None:
        """None where RocketMQ knows no answer: an unknown topic or strategy, nobody online."""
        topic = self._topics.find(query.topic)
        if topic is None:
            return None
        queues = [MessageQueue(query.topic, self._broker_name, number) for number in range(topic.read_queue_nums)]
        if query.message_model == BROADCASTING:
            return queues
        members = self._members.client_ids(query.consumer_group)
        if not members or query.strategy_name not in STRATEGIES:
            return None
        return allocate(query.strategy_name, queues, members, query.client_id)


class SetRequestMode:
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


class RequestModeList:
    def __init__(self, modes: RequestModes) -> None:
        self._modes = modes

    def __call__(self, request: Request) -> Command:
        return response(request.command, ResponseCode.SUCCESS, body=write_body(self._modes.table))
