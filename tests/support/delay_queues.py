"""What a broker keeps until its time, and a group's retry queue, over real sockets: for the reading of retries."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from remoting.connection import Connection
from remoting.wire.bodies.consume_queue import QueueEntries, QueueEntry
from remoting.wire.bodies.consume_stats import ConsumeStats, QueueProgress, write_consume_stats
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicOffset, write_topic_stats
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage
from tests.support.dead_letter_brokers import DeadLetterQueues, dead_message

FAILED_MS = 1_700_000_100_000


def retried(offset: int, *, attempt: int = 1, target: str = "%RETRY%billing", **fields: object) -> StoredMessage:
    """A message that failed, as a broker keeps it at a delay level; `properties` and further fields as given."""
    properties = {Property.REAL_TOPIC: target, **fields.pop("properties", {})}  # type: ignore[dict-item]
    values = {"queue_id": 2, "reconsume_times": attempt, "store_timestamp_ms": FAILED_MS + offset}
    return dead_message(offset, properties=properties, **({"topic": SCHEDULE_TOPIC} | values | fields))


@dataclass
class DelayQueues(DeadLetterQueues):
    """Each topic has one queue, that of its first message; each message is due `delay_ms` after it was stored.

    `delivered`: delay level → next offset. `committed`: of the retry queue; None: the group committed nothing.
    """

    delay_ms: int = 10_000
    delivered: dict[int, int] = field(default_factory=dict)
    committed: int | None = None
    pulled_up_to: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.broker.server.answers |= {
            RequestCode.GET_TOPIC_STATS_INFO: self._stats,
            RequestCode.QUERY_CONSUME_QUEUE: self._entries,
            RequestCode.GET_BROKER_RUNTIME_INFO: self._figures,
            RequestCode.GET_CONSUME_STATS: self._progress,
        }

    def _queue(self, topic: str) -> MessageQueue:
        return MessageQueue(topic, self.broker.name, self.messages[topic][0].queue_id)

    def _stats(self, _: Connection, request: Command) -> Command:
        topic = request.ext_fields["topic"]
        if topic not in self.messages:
            return response(request, ResponseCode.TOPIC_NOT_EXIST, "no such topic")
        held = self.messages[topic]
        ends = TopicOffset(min_offset=self.min_offset, max_offset=held[-1].queue_offset + 1)
        return response(request, ResponseCode.SUCCESS, body=write_topic_stats({self._queue(topic): ends}))

    def _entries(self, _: Connection, request: Command) -> Command:
        first, count = int(request.ext_fields["index"]), int(request.ext_fields["count"])
        held = self.messages[request.ext_fields["topic"]]
        found = [one for one in held if first <= one.queue_offset < first + count]
        entries = [
            QueueEntry(
                physic_offset=one.commit_log_offset, physic_size=1, tags_code=one.store_timestamp_ms + self.delay_ms
            )
            for one in found
        ]
        body = QueueEntries(max_queue_index=len(held), min_queue_index=0, queue_data=entries)
        return response(request, ResponseCode.SUCCESS, body=write_body(body))

    def _figures(self, _: Connection, request: Command) -> Command:
        figures = {f"scheduleMessageOffset_{level}": f"{offset},99" for level, offset in self.delivered.items()}
        return response(request, ResponseCode.SUCCESS, body=msgspec.json.encode({"table": figures}))

    def _progress(self, _: Connection, request: Command) -> Command:
        topic = request.ext_fields["topic"]
        queues = {}
        if self.committed is not None:
            queues[self._queue(topic)] = QueueProgress(
                broker_offset=self.messages[topic][-1].queue_offset + 1,
                consumer_offset=self.committed,
                pull_offset=self.pulled_up_to,
            )
        return response(request, ResponseCode.SUCCESS, body=write_consume_stats(ConsumeStats(queues=queues)))
