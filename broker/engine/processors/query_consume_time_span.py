"""QUERY_CONSUME_TIME_SPAN (303): from when to when a topic's messages are, and where a group is between them."""

from __future__ import annotations

from collections.abc import Callable

from broker.engine.groups.offsets import Offsets
from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.consume_stats import QueueTimeSpan, write_time_spans
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.offsets import ConsumeTimeSpanHeader
from remoting.wire.headers.typed import read_header


class QueryConsumeTimeSpan:
    """`clock`: ms since the epoch."""

    def __init__(
        self, *, topics: Topics, offsets: Offsets, store: MessageStore, clock: Callable[[], int], broker_name: str
    ) -> None:
        self._topics = topics
        self._offsets = offsets
        self._store = store
        self._clock = clock
        self._broker_name = broker_name

    def __call__(self, request: Request) -> Command:
        """Raises MessageError for an unknown topic."""
        header = read_header(ConsumeTimeSpanHeader, request.command.ext_fields)
        topic = self._topics.find(header.topic)
        if topic is None:
            raise MessageError(f"topic[{header.topic}] not exist", ResponseCode.TOPIC_NOT_EXIST)
        spans = {
            MessageQueue(header.topic, self._broker_name, queue_id): self._span(header, queue_id)
            for queue_id in range(topic.write_queue_nums)
        }
        return response(request.command, ResponseCode.SUCCESS, body=write_time_spans(spans))

    def _span(self, header: ConsumeTimeSpanHeader, queue_id: int) -> QueueTimeSpan:
        """Returns the times of one queue: those of storing, -1 where there is no message."""
        first = self._store.min_offset(header.topic, queue_id)
        end = self._store.max_offset(header.topic, queue_id)
        committed = self._offsets.committed(header.group, header.topic, queue_id)
        next_offset = committed if committed is not None else 0
        first_ms = self._stored_ms(header.topic, queue_id, first)
        next_ms = self._stored_ms(header.topic, queue_id, next_offset)
        return QueueTimeSpan(
            min_time_stamp=first_ms,
            max_time_stamp=self._stored_ms(header.topic, queue_id, end - 1),
            consume_time_stamp=self._stored_ms(header.topic, queue_id, next_offset - 1)
            if next_offset > 0
            else first_ms,
            delay_time=self._clock() - next_ms if next_offset < end and next_ms >= 0 else 0,
        )

    def _stored_ms(self, topic: str, queue_id: int, queue_offset: int) -> int:
        return self._store.store_timestamp_at(topic, queue_id, queue_offset) if queue_offset >= 0 else -1
