"""CLEAN_UNUSED_TOPIC (316): a tool has queues deleted whose topic no longer exists (RocketMQ's `AdminBrokerProcessor`).

There are none unless `topics.json` was taken from another time than the log.
"""

from __future__ import annotations

import logging

from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from broker.engine.topics.topic_configs import Topics
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.names import is_system_topic

logger = logging.getLogger(__name__)


class CleanUnusedTopic:
    def __init__(self, topics: Topics, store: MessageStore) -> None:
        self._topics = topics
        self._store = store

    def __call__(self, request: Request) -> Command:
        """Deletes their messages. Raises OSError."""
        for name in self._store.topics():
            if self._topics.find(name) is None and not is_system_topic(name):
                logger.warning("deleting the queues of %s, a topic that does not exist", name)
                self._store.delete_topic(name)
        return response(request.command, ResponseCode.SUCCESS)
