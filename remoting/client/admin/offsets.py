"""Queue offsets on one broker: the ends of queues, and the progress of groups.

A committed offset is the next to consume, a max offset one past the last message.
"""

from __future__ import annotations

from remoting.client.admin.requests import Requests, read_aside
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.consume_stats import (
    CommittedOffsets,
    ConsumeStats,
    QueueTimeSpan,
    read_committed_offsets,
    read_consume_stats,
    read_time_spans,
)
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import TopicList
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.headers.groups import GetConsumeStatsHeader, GroupHeader
from remoting.wire.headers.offsets import (
    ConsumeTimeSpanHeader,
    OffsetResponseHeader,
    QueryConsumerOffsetHeader,
    QueueHeader,
    SearchOffsetHeader,
    TimestampResponseHeader,
    UpdateConsumerOffsetHeader,
)
from remoting.wire.headers.typed import read_header


class Offsets:
    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    # the ends of queues

    async def max(self, address: str, topic: str, queue_id: int) -> int:
        """Returns the queue offset one past the last message (30)."""
        return await self._of_queue(address, RequestCode.GET_MAX_OFFSET, QueueHeader(topic=topic, queue_id=queue_id))

    async def min(self, address: str, topic: str, queue_id: int) -> int:
        """Returns the queue offset of the first message that can be read (31)."""
        return await self._of_queue(address, RequestCode.GET_MIN_OFFSET, QueueHeader(topic=topic, queue_id=queue_id))

    async def search(
        self, address: str, topic: str, queue_id: int, timestamp_ms: int, *, last_before: bool = False
    ) -> int:
        """Returns the queue offset of the first message stored at or after `timestamp_ms` (29).

        Returns the max offset when all are older; Apache's 4 line then returns the last message's. With `last_before`:
        of the last message stored at or before it; brokers before 5.1 don't know that, and answer as without.
        """
        boundary = "UPPER" if last_before else None
        header = SearchOffsetHeader(topic=topic, queue_id=queue_id, timestamp=timestamp_ms, boundary_type=boundary)
        return await self._of_queue(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

    async def earliest_store_time(self, address: str, topic: str, queue_id: int) -> int | None:
        """Returns when the first readable message was stored, ms since the epoch (32); None in an empty queue."""
        header, code = QueueHeader(topic=topic, queue_id=queue_id), RequestCode.GET_EARLIEST_MSG_STORETIME
        answer = await self._requests.ask(address, code, header, about=f"topic {topic!r}")
        timestamp_ms = read_header(TimestampResponseHeader, answer.ext_fields).timestamp
        return None if timestamp_ms < 0 else timestamp_ms

    # the progress of groups

    async def committed(
        self, address: str, group: str, topic: str, queue_id: int, *, zero_if_not_found: bool | None = None
    ) -> int | None:
        """Returns the committed offset (14); None when the broker has none.

        A queue that still has its first message counts as committed at 0, unless `zero_if_not_found` is False; Apache's
        4 line doesn't know that field.
        """
        header = QueryConsumerOffsetHeader(
            consumer_group=group, topic=topic, queue_id=queue_id, set_zero_if_not_found=zero_if_not_found
        )
        about = f"group {group!r} on topic {topic!r}"
        try:
            answer = await self._requests.ask(address, RequestCode.QUERY_CONSUMER_OFFSET, header, about=about)
        except BrokerRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return read_header(OffsetResponseHeader, answer.ext_fields).offset

    async def commit(self, address: str, group: str, topic: str, queue_id: int, commit_offset: int) -> None:
        """Commits a group's offset of one queue (15)."""
        header = UpdateConsumerOffsetHeader(
            consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=commit_offset
        )
        about = f"group {group!r} on topic {topic!r}"
        await self._requests.ask(address, RequestCode.UPDATE_CONSUMER_OFFSET, header, about=about)

    async def consume_stats(self, address: str, group: str, topic: str | None = None) -> ConsumeStats:
        """Returns the group's progress on this broker's queues of the topic, or of every topic it committed on (208).

        A topic with one committed queue tells of all its queues, the others from 0; one without any is missing.
        """
        header = GetConsumeStatsHeader(consumer_group=group, topic=topic)
        answer = await self._requests.ask(address, RequestCode.GET_CONSUME_STATS, header, about=f"group {group!r}")
        return await read_aside(read_consume_stats, answer.body)

    async def all_committed(self, address: str) -> CommittedOffsets:
        """Returns every committed offset of every group on a broker (43)."""
        answer = await self._requests.ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET)
        return await read_aside(read_committed_offsets, answer.body)

    async def time_spans(self, address: str, group: str, topic: str) -> dict[MessageQueue, QueueTimeSpan]:
        """Returns per queue when its messages, and the group's last one, were stored, and how old its next is (303)."""
        header, code = ConsumeTimeSpanHeader(topic=topic, group=group), RequestCode.QUERY_CONSUME_TIME_SPAN
        answer = await self._requests.ask(address, code, header, about=f"group {group!r} on topic {topic!r}")
        return read_time_spans(answer.body)

    async def topics_of_group(self, address: str, group: str) -> list[str]:
        """Returns the topics on which the group committed an offset, its retry topic among them (343)."""
        header, code = GroupHeader(group=group), RequestCode.QUERY_TOPICS_BY_CONSUMER
        answer = await self._requests.ask(address, code, header, about=f"group {group!r}")
        return read_body(TopicList, answer.body).topic_list

    async def _of_queue(self, address: str, code: RequestCode, header: QueueHeader | SearchOffsetHeader) -> int:
        answer = await self._requests.ask(address, code, header, about=f"topic {header.topic!r}")
        return read_header(OffsetResponseHeader, answer.ext_fields).offset
