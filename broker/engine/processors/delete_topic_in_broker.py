"""DELETE_TOPIC_IN_BROKER (215): a tool deletes a topic (RocketMQ's `AdminBrokerProcessor`)."""

from __future__ import annotations

from broker.engine.groups.assignments import Assignments
from broker.engine.groups.offsets import Offsets
from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from broker.engine.topics.topic_configs import Topics
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.routes import TopicHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.names import check_topic


class DeleteTopicInBroker:
    """215. The settings, every group's progress and all messages; a topic of that name starts again at 0."""

    def __init__(self, topics: Topics, offsets: Offsets, assignments: Assignments, store: MessageStore) -> None:
        self._topics = topics
        self._offsets = offsets
        self._assignments = assignments
        self._store = store

    def __call__(self, request: Request) -> Command:
        """Deletes the topic; one that isn't there is deleted already.

        Raises MessageError, ConfigFileUnwritable, OSError.
        """
        name = read_header(TopicHeader, request.command.ext_fields).topic
        if not name.strip():
            raise MessageError("The specified topic is blank.", ResponseCode.INVALID_PARAMETER)
        self._topics.check_not_own(name)
        if self._topics.find(name) is None:
            # An unknown name may be anything, and a name is a folder in the store.
            check_topic(name)
        is_there = self._topics.delete(name) or bool(self._store.queues(name))
        self._offsets.forget_topic(name)
        self._assignments.forget_topic(name)
        if is_there:
            self._store.delete_topic(name)
        return response(request.command, ResponseCode.SUCCESS)
