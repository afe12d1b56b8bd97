"""QUERY_ASSIGNMENT (400): which queues a member consumes (RocketMQ's `QueryAssignmentProcessor`).

A client that doesn't rebalance itself (`clientRebalance=false`) asks the broker which queues are its own. The answer
is what its own strategy would have given it. The mode is always PULL: this broker has no POP.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.engine.groups.members import BROADCASTING, Members
from broker.engine.serving.requests import Request
from broker.engine.topics.topic_configs import Topics
from remoting.allocation import allocate
from remoting.wire.bodies.assignment import PULL, AssignmentQuery, write_assignments
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response

# Those that Apache's broker loads; with any other the client is on its own.
STRATEGY_NAMES = ("AVG", "AVG_BY_CIRCLE")


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
        """Returns None where RocketMQ has no answer: an unknown topic or strategy, no member online."""
        topic = self._topics.find(query.topic)
        if topic is None:
            return None
        queues = [MessageQueue(query.topic, self._broker_name, number) for number in range(topic.read_queue_nums)]
        if query.message_model == BROADCASTING:
            return queues
        members = self._members.client_ids(query.consumer_group)
        if not members or query.strategy_name not in STRATEGY_NAMES:
            return None
        return allocate(query.strategy_name, queues, members, query.client_id)
