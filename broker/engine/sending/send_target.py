"""The topic and queue that a message is sent to, and whether that is allowed: `AbstractSendMessageProcessor.msgCheck`.

The checks are in RocketMQ 5's order, with its response codes.
"""

from __future__ import annotations

import random

from broker.engine.config import BrokerConfig
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.topics import PERM_READ_WRITE, TopicConfig
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.headers.send import SendMessageHeader
from remoting.wire.names import NOT_ALLOWED_SEND_TOPICS, check_topic, is_retry_topic


class SendTarget:
    """Checks the target of sends and creates missing topics.

    A broker that may not be written to (`brokerPermission`) refuses only sends to ordered topics, whose producers must
    not switch to another broker; from the others its routes keep producers away.
    """

    def __init__(self, topics: Topics, config: BrokerConfig) -> None:
        self._topics = topics
        self._config = config

    def resolve(self, header: SendMessageHeader) -> TopicConfig:
        """Returns the topic's settings, creating the topic where that is allowed. Raises MessageError.

        When the client leaves the queue to the broker, its number is set in `header`.
        """
        topic = self._topic(header)
        if header.queue_id >= max(topic.read_queue_nums, topic.write_queue_nums):
            raise MessageError(
                f"request queueId[{header.queue_id}] is illegal, {topic.topic_name} has"
                f" {topic.write_queue_nums} queues to write to and {topic.read_queue_nums} to read from",
                ResponseCode.INVALID_PARAMETER,
            )
        if header.queue_id < 0:
            header.queue_id = random.randrange(_writable_queue_nums(topic))
        return topic

    def _topic(self, header: SendMessageHeader) -> TopicConfig:
        name = header.topic
        topic = self._topics.find(name)
        if topic is not None and topic.order and not self._config.is_writable:
            raise MessageError(
                f"the broker[{self._config.advertise_host}] sending message is forbidden", ResponseCode.NO_PERMISSION
            )
        if topic is None:
            check_topic(name)
        if name in NOT_ALLOWED_SEND_TOPICS:
            raise MessageError(f"Sending message to topic[{name}] is forbidden.", ResponseCode.NO_PERMISSION)
        if topic is None:
            topic = self._topics.create_on_send(name, header.default_topic, header.default_topic_queue_nums)
        if topic is None and is_retry_topic(name):
            topic = self._topics.create_for_send_back(name, 1, PERM_READ_WRITE)
        if topic is None:
            raise MessageError(f"topic[{name}] not exist, apply first please!", ResponseCode.TOPIC_NOT_EXIST)
        return topic


def _writable_queue_nums(topic: TopicConfig) -> int:
    """Returns the topic's write queues. Raises MessageError when it has none."""
    if topic.write_queue_nums <= 0:
        raise MessageError(
            f"{topic.topic_name} has no queues to write to; give it some, or name the queue", ResponseCode.NO_PERMISSION
        )
    return topic.write_queue_nums
