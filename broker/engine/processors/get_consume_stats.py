"""GET_CONSUME_STATS (208): how far a group is on its queues (`AdminBrokerProcessor.getConsumeStats`).

Topics of a list count as they are. Else the one named, or those on which the group committed, less those to which an
online group isn't subscribed. A queue without a committed offset counts as 0, as in RocketMQ.
"""

from __future__ import annotations

from broker.engine.groups.members import Members
from broker.engine.groups.offsets import Offsets
from broker.engine.serving.requests import Request
from broker.engine.stats import Rates
from broker.engine.store.message_store import MessageStore
from broker.engine.topics.topic_configs import Topics
from remoting.wire.bodies.consume_stats import ConsumeStats, QueueProgress, write_consume_stats
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.groups import GetConsumeStatsHeader
from remoting.wire.headers.typed import read_header


class GetConsumeStats:
    """`got`: messages given out, keyed (topic, group)."""

    def __init__(
        self,
        *,
        topics: Topics,
        members: Members,
        offsets: Offsets,
        store: MessageStore,
        got: Rates[tuple[str, str]],
        broker_name: str,
    ) -> None:
        self._topics = topics
        self._members = members
        self._offsets = offsets
        self._store = store
        self._got = got
        self._broker_name = broker_name

    def __call__(self, request: Request) -> Command:
        header = read_header(GetConsumeStatsHeader, request.command.ext_fields)
        group = header.consumer_group
        stats = ConsumeStats(queues={})
        for topic in self._topics_of(header):
            one = self.on_topic(group, topic)
            stats.queues |= one.queues
            stats.consume_tps += one.consume_tps
        return response(request.command, ResponseCode.SUCCESS, body=write_consume_stats(stats))

    def on_topic(self, group: str, topic: str) -> ConsumeStats:
        """Returns the group's progress on a topic's queues; of a topic that is gone there are none."""
        config = self._topics.find(topic)
        queue_ids = range(config.read_queue_nums) if config is not None else range(0)
        queues = {
            MessageQueue(topic, self._broker_name, queue_id): self._progress(group, topic, queue_id)
            for queue_id in queue_ids
        }
        return ConsumeStats(consume_tps=self._got.per_second((topic, group)), queues=queues)

    def _topics_of(self, header: GetConsumeStatsHeader) -> list[str]:
        listed = dict.fromkeys(topic for topic in (header.topic_list or "").split(";") if topic)
        if listed:
            return list(listed)
        topics = [header.topic] if header.topic else self._offsets.topics_of(header.consumer_group)
        return self._subscribed(header.consumer_group, topics)

    def topics_of(self, group: str) -> list[str]:
        """Returns the topics on which the group committed, less those to which it is online and not subscribed."""
        return self._subscribed(group, self._offsets.topics_of(group))

    def _subscribed(self, group: str, topics: list[str]) -> list[str]:
        online = self._members.find(group)
        if online is not None and online.subscriptions:
            return [topic for topic in topics if topic in online.subscriptions]
        return topics

    def _progress(self, group: str, topic: str, queue_id: int) -> QueueProgress:
        committed = self._offsets.committed(group, topic, queue_id) or 0
        pulled = self._offsets.pulled_offset(group, topic, queue_id)
        last_ms = self._store.store_timestamp_at(topic, queue_id, committed - 1) if committed > 0 else 0
        return QueueProgress(
            broker_offset=self._store.max_offset(topic, queue_id),
            consumer_offset=committed,
            last_timestamp=max(0, last_ms),
            pull_offset=max(committed, pulled if pulled is not None else committed),
        )
