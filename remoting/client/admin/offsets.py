"""Queue offsets on one broker: the ends of queues, and the progress of groups.

A committed offset is the next to consume, a max offset one past the last message.
"""

from __future__ import annotations

from remoting.client.admin.requests import Requests
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.consume_stats import (
    CommittedOffsets,
    ConsumeStats,
    read_committed_offsets,
    read_consume_stats,
)
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.headers.groups import GetConsumeStatsHeader
from remoting.wire.headers.offsets import (
    OffsetResponseHeader,
    QueryConsumerOffsetHeader,
    QueueHeader,
    SearchOffsetHeader,
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

    async def search(self, address: str, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """Returns the queue offset of the first message stored at or after `timestamp_ms` (29).

        Returns the max offset when all are older.
        """
        header = SearchOffsetHeader(topic=topic, queue_id=queue_id, timestamp=timestamp_ms)
        return await self._of_queue(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

    # the progress of groups

    async def committed(
        self, address: str, group: str, topic: str, queue_id: int, *, zero_if_not_found: bool | None = None
    ) -> int | None:
        """Returns the committed offset (14); None when the broker has none."""
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
        """Returns the progress of the queues of this broker for which the group has committed an offset (208)."""
        header = GetConsumeStatsHeader(consumer_group=group, topic=topic)
        answer = await self._requests.ask(address, RequestCode.GET_CONSUME_STATS, header, about=f"group {group!r}")
        return read_consume_stats(answer.body)

    async def all_committed(self, address: str) -> CommittedOffsets:
        """Returns every committed offset of every group on a broker (43)."""
        answer = await self._requests.ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET)
        return read_committed_offsets(answer.body)

    async def _of_queue(self, address: str, code: RequestCode, header: QueueHeader | SearchOffsetHeader) -> int:
        answer = await self._requests.ask(address, code, header, about=f"topic {header.topic!r}")
        return read_header(OffsetResponseHeader, answer.ext_fields).offset
