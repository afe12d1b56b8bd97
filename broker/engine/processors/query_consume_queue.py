"""QUERY_CONSUME_QUEUE (321): the entries of a consume queue as they lie there."""

from __future__ import annotations

from broker.engine.groups.members import Members
from broker.engine.serving.requests import Request
from broker.engine.store.message_store import MessageStore
from remoting.wire.bodies.consume_queue import QueueEntries, QueueEntry
from remoting.wire.bodies.document import write_body
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.messages import QueryConsumeQueueHeader
from remoting.wire.headers.typed import read_header

# In one answer; a command line wants ten.
ENTRIES_MAX = 1024


class QueryConsumeQueue:
    def __init__(self, members: Members, store: MessageStore) -> None:
        self._members = members
        self._store = store

    def __call__(self, request: Request) -> Command:
        """Raises MessageError for a queue that never had a message."""
        header = read_header(QueryConsumeQueueHeader, request.command.ext_fields)
        if header.queue_id not in self._store.queues(header.topic):
            raise MessageError(f"{header.queue_id}@{header.topic} is not exist!", ResponseCode.SYSTEM_ERROR)
        first = self._store.min_offset(header.topic, header.queue_id)
        end = self._store.max_offset(header.topic, header.queue_id)
        if not first <= header.index < end:
            text = f"Index {header.index} of {header.queue_id}@{header.topic} is not exist!"
            return response(request.command, ResponseCode.SUCCESS, text)
        last = min(end, header.index + max(0, min(header.count, ENTRIES_MAX)))
        body = QueueEntries(
            max_queue_index=end,
            min_queue_index=first,
            queue_data=self._entries(header.topic, header.queue_id, range(header.index, last)),
        )
        if header.consumer_group is not None:
            self._add_filter(body, header.consumer_group, header.topic)
        return response(request.command, ResponseCode.SUCCESS, body=write_body(body))

    def _add_filter(self, body: QueueEntries, group_name: str, topic: str) -> None:
        group = self._members.find(group_name)
        subscription = group.subscriptions.get(topic) if group is not None else None
        body.subscription_data = subscription
        if subscription is None:
            body.filter_data = f"{group_name}@{topic} is not online!"

    def _entries(self, topic: str, queue_id: int, queue_offsets: range) -> list[QueueEntry]:
        entries = [self._store.queue_entry(topic, queue_id, queue_offset) for queue_offset in queue_offsets]
        return [
            QueueEntry(physic_offset=entry[0], physic_size=entry[1], tags_code=entry[2])
            for entry in entries
            if entry is not None
        ]
