"""GET_TOPIC_STATS_INFO (202): the edges of a topic's queues."""

from __future__ import annotations

from broker.engine.serving.requests import Request
from broker.engine.stats import Rates
from broker.engine.store.message_store import MessageStore
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicOffset, write_topic_stats
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.routes import TopicHeader
from remoting.wire.headers.typed import read_header


class GetTopicStatsInfo:
    """`put`: messages stored, keyed by topic."""

    def __init__(self, topics: Topics, store: MessageStore, put: Rates[str], broker_name: str) -> None:
        self._topics = topics
        self._store = store
        self._put = put
        self._broker_name = broker_name

    def __call__(self, request: Request) -> Command:
        """Raises MessageError for an unknown topic."""
        header = read_header(TopicHeader, request.command.ext_fields)
        config = self._topics.find(header.topic)
        if config is None:
            raise MessageError(f"topic[{header.topic}] not exist", ResponseCode.TOPIC_NOT_EXIST)
        offsets = {
            MessageQueue(header.topic, self._broker_name, queue_id): self._edges(header.topic, queue_id)
            for queue_id in range(max(config.read_queue_nums, config.write_queue_nums))
        }
        body = write_topic_stats(offsets, self._put.per_second(header.topic))
        return response(request.command, ResponseCode.SUCCESS, body=body)

    def _edges(self, topic: str, queue_id: int) -> TopicOffset:
        last = self._store.max_offset(topic, queue_id)
        last_ms = self._store.store_timestamp_at(topic, queue_id, last - 1) if last > 0 else 0
        return TopicOffset(
            last_update_timestamp=max(0, last_ms),
            max_offset=last,
            min_offset=self._store.min_offset(topic, queue_id),
        )
