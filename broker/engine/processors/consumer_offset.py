"""QUERY_CONSUMER_OFFSET (14), UPDATE_CONSUMER_OFFSET (15): a group's progress (`ConsumerManageProcessor`)."""

from __future__ import annotations

from broker.engine.groups.group_configs import Groups
from broker.engine.groups.offsets import Offsets
from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from broker.engine.topics.topic_configs import QUEUE_NUMS_MAX, Topics
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.offsets import OffsetResponseHeader, QueryConsumerOffsetHeader, UpdateConsumerOffsetHeader
from remoting.wire.headers.typed import read_header, write_header

# RocketMQ takes a commit for any queue id, and a topic that got fewer queues needs that; each id costs memory for ever.
QUEUES_BEYOND_MAX = 1024


class QueryConsumerOffset:
    """`hot_bytes`: how far behind the log's end a message still counts as "in memory" (RocketMQ: 40 % of the RAM)."""

    def __init__(self, offsets: Offsets, store: MessageStore, hot_bytes: int) -> None:
        self._offsets = offsets
        self._store = store
        self._hot_bytes = hot_bytes

    def __call__(self, request: Request) -> Command:
        header = read_header(QueryConsumerOffsetHeader, request.command.ext_fields)
        committed = self._offsets.committed(header.consumer_group, header.topic, header.queue_id)
        if committed is None and header.set_zero_if_not_found is not False and self._has_its_first(header):
            committed = 0
        if committed is None:
            text = f"Not found, do not set to zero, maybe this group consumer boot first: {header.consumer_group}"
            return response(request.command, ResponseCode.QUERY_NOT_FOUND, text)
        return response(
            request.command, ResponseCode.SUCCESS, ext_fields=write_header(OffsetResponseHeader(offset=committed))
        )

    def _has_its_first(self, header: QueryConsumerOffsetHeader) -> bool:
        """Tells whether the queue is young: still has its first message, within `hot_bytes` of the log's end.

        A new group reads such a queue from its first message, whatever its start position says.
        """
        if self._store.min_offset(header.topic, header.queue_id) > 0:
            return False
        first = self._store.queue_entry(header.topic, header.queue_id, 0)
        return first is not None and self._store.max_commit_log_offset - first[0] <= self._hot_bytes


class UpdateConsumerOffset:
    """While a reset is pending, what members commit is older than it and changes nothing."""

    def __init__(self, topics: Topics, groups: Groups, offsets: Offsets) -> None:
        self._topics = topics
        self._groups = groups
        self._offsets = offsets

    def __call__(self, request: Request) -> Command:
        """Raises MessageError naming what doesn't exist or is missing."""
        header = read_header(UpdateConsumerOffsetHeader, request.command.ext_fields)
        if not self._groups.exists(header.consumer_group):
            raise MessageError(f"Group {header.consumer_group} not exist!", ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST)
        topic = self._topics.find(header.topic)
        if topic is None:
            raise MessageError(f"Topic {header.topic} not exist!", ResponseCode.TOPIC_NOT_EXIST)
        if header.queue_id is None or header.commit_offset is None:
            raise MessageError("QueueId or commitOffset is null", ResponseCode.INVALID_PARAMETER)
        if header.queue_id < 0 or header.commit_offset < 0:
            raise MessageError(
                f"queueId {header.queue_id} and commitOffset {header.commit_offset} may not be negative",
                ResponseCode.INVALID_PARAMETER,
            )
        if header.queue_id >= QUEUE_NUMS_MAX:
            raise MessageError(
                f"queueId {header.queue_id} is illegal: no topic has more than {QUEUE_NUMS_MAX} queues",
                ResponseCode.INVALID_PARAMETER,
            )
        self._check_room(header.consumer_group, topic, header.queue_id)
        if self._offsets.has_reset(header.consumer_group, header.topic, header.queue_id):
            return response(request.command, ResponseCode.SUCCESS, "Offset has been previously reset")
        self._offsets.commit(header.consumer_group, header.topic, header.queue_id, header.commit_offset)
        return response(request.command, ResponseCode.SUCCESS)

    def _check_room(self, group: str, topic: TopicConfig, queue_id: int) -> None:
        """Raises MessageError for one queue too many of those that the topic doesn't have (any more)."""
        queue_count = max(topic.read_queue_nums, topic.write_queue_nums)
        if queue_id < queue_count or self._offsets.committed(group, topic.topic_name, queue_id) is not None:
            return
        if self._offsets.queue_count(group, topic.topic_name) >= queue_count + QUEUES_BEYOND_MAX:
            raise MessageError(
                f"queueId {queue_id} does not exist: {topic.topic_name} has {queue_count} queues",
                ResponseCode.INVALID_PARAMETER,
            )
