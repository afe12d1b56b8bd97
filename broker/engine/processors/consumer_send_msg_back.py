"""CONSUMER_SEND_MSG_BACK (36): a consumer returns a message that it could not consume (`AbstractSendMessageProcessor`).

The message is delivered again through the group's retry topic, after a delay that grows with each failure; after too
many failures it becomes a dead letter. The checks are in RocketMQ's order. Unlike Apache's, the answer waits for the
flush, as for any send: the consumer commits past the message as soon as the answer is SUCCESS. And it keeps why the
message failed, when the consumer says so, as properties of what it stores.
"""

from __future__ import annotations

import random

from broker.engine.config import BrokerConfig
from broker.engine.groups.group_configs import Groups
from broker.engine.schedule.entering import TIMER_PROPERTIES, wants_timer
from broker.engine.sending.accepting import Accepting, Answer
from broker.engine.sending.retry import (
    DLQ_DELAY_OF_SEND_BACK,
    DLQ_QUEUE_NUMS,
    is_dead_after_send_back,
    retry_level,
    retry_limit,
)
from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, MessageDraft
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import PERM_READ_WRITE
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.failures import FailureReason, remove_reason
from remoting.wire.headers.groups import SendMessageBackHeader
from remoting.wire.headers.typed import read_header
from remoting.wire.limits import PROPERTIES_BYTES_MAX
from remoting.wire.names import dlq_topic, retry_topic
from remoting.wire.properties import Property, encode_properties
from remoting.wire.stored_message import StoredMessage

# Of the largest properties, kept free for what a delay adds when the message enters the schedule.
PROPERTIES_RESERVED_BYTES = 1024


class ConsumerSendMsgBack:
    """Processor of messages that consumers send back."""

    def __init__(
        self, *, topics: Topics, groups: Groups, store: MessageStore, accepting: Accepting, config: BrokerConfig
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._store = store
        self._accepting = accepting
        self._config = config

    def __call__(self, request: Request) -> Command | None:
        """Returns the answer, or None when it is sent after the flush. Raises WireError with the code to answer."""
        command = request.command
        header = read_header(SendMessageBackHeader, command.ext_fields)
        group = self._groups.find(header.group)
        if group is None:
            raise MessageError(
                f"subscription group not exist, {header.group}", ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            )
        if not self._config.is_writable:
            raise MessageError(
                f"the broker[{self._config.advertise_host}] sending message is forbidden", ResponseCode.NO_PERMISSION
            )
        if group.retry_queue_nums <= 0:
            return response(command, ResponseCode.SUCCESS)
        queue_nums = self._retry_queue_nums(group)
        message = self._store.message_at(header.offset)
        if message is None:
            raise MessageError(f"look message by offset failed, {header.offset}", ResponseCode.SYSTEM_ERROR)
        draft, properties = self._returned(message, header, group, command.version, queue_nums)
        self._accepting.submit(draft, properties, waits=True, answer=_answering(request))
        return None

    def _retry_queue_nums(self, group: SubscriptionGroupConfig) -> int:
        """Creates the retry topic where it is missing, and returns how many of its queues are used. Raises MessageError
        when it may not be written to.

        These are no more than its read queues: Apache's broker also picks others, which no consumer reads, when a tool
        has reduced the topic's queues.
        """
        name = retry_topic(group.group_name)
        topic = self._topics.create_for_send_back(name, group.retry_queue_nums, PERM_READ_WRITE)
        if not topic.is_writable:
            raise MessageError(f"the topic[{name}] sending message is forbidden", ResponseCode.NO_PERMISSION)
        return max(1, min(group.retry_queue_nums, topic.read_queue_nums))

    def _returned(
        self,
        message: StoredMessage,
        header: SendMessageBackHeader,
        group: SubscriptionGroupConfig,
        version: int,
        queue_nums: int,
    ) -> tuple[MessageDraft, dict[str, str]]:
        """Returns the message for the retry topic or the dead-letter topic, and its properties."""
        properties = dict(message.properties)
        properties.setdefault(Property.RETRY_TOPIC, message.topic)
        properties.setdefault(Property.ORIGIN_MESSAGE_ID, message.offset_message_id)
        properties[Property.WAIT] = "false"
        _set_reason(properties, header)
        limit = retry_limit(group, header.max_reconsume_times, version)
        if is_dead_after_send_back(message.reconsume_times, limit, header.delay_level):
            topic, queue_id = dlq_topic(group.group_name), 0
            self._topics.create_for_send_back(topic, DLQ_QUEUE_NUMS, PERM_READ_WRITE)
            properties[Property.DELAY] = DLQ_DELAY_OF_SEND_BACK
            if wants_timer(properties):
                # Its delivery time had come when it was sent, but may lie ahead again if the clock was set back since.
                for name in TIMER_PROPERTIES:
                    properties.pop(name, None)
        else:
            topic, queue_id = retry_topic(group.group_name), random.randrange(queue_nums)
            properties[Property.DELAY] = str(retry_level(header.delay_level, message.reconsume_times))
        draft = MessageDraft(
            topic=topic,
            queue_id=queue_id,
            body=message.body,
            born_host=message.born_host,
            store_host=self._config.store_host,
            born_timestamp_ms=message.born_timestamp_ms,
            flag=message.flag,
            sys_flag=message.sys_flag,
            reconsume_times=message.reconsume_times + 1,
        )
        return draft, properties


def _set_reason(properties: dict[str, str], header: SendMessageBackHeader) -> None:
    """Sets why this attempt failed, or nothing where that does not fit; the reason of an earlier one is not it."""
    remove_reason(properties)
    if not header.failure_class:
        return
    reason = FailureReason(
        header.failure_class,
        header.failure_text or "",
        header.failure_listener or "",
        header.failure_member or "",
        header.failure_attempt or 1,
    )
    told = dict(properties)
    reason.write(told)
    if len(encode_properties(told).encode("utf-8", "replace")) + PROPERTIES_RESERVED_BYTES <= PROPERTIES_BYTES_MAX:
        properties.update(told)


def _answering(request: Request) -> Answer:
    """Returns the callback that answers the request."""
    command, connection = request.command, request.connection

    def answer(result: list[Appended] | MessageError) -> None:
        if command.is_oneway:
            return
        if isinstance(result, MessageError):
            connection.send(response(command, ResponseCode.SYSTEM_ERROR, str(result)))
        else:
            connection.send(response(command, ResponseCode.SUCCESS))

    return answer
