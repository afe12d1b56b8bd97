"""Derives a record's entries in the consume queue and the key index, for appends and for recovery alike.

RocketMQ's `ReputMessageService` with `CommitLogDispatcherBuildConsumeQueue` and `…BuildIndex`. Records of prepared and
of rolled-back transactions get no queue entry and no queue offset; those of rolled-back ones no keys either.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.engine.store.due_times import timer_entry
from broker.engine.store.errors import IndexesStale
from broker.engine.store.key_index import KeyIndex, message_keys
from broker.engine.store.layout import RecordFields, hash_topic
from broker.engine.store.queue_table import QueueTable
from remoting.wire.names import SCHEDULE_TOPIC, TIMER_TOPIC
from remoting.wire.properties import Property, decode_properties
from remoting.wire.stored_message import TRANSACTION_MASK, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from remoting.wire.tags import tags_code


def has_queue_entry(sys_flag: int) -> bool:
    """Tells whether a record with this system flag has an entry in its consume queue."""
    return sys_flag & TRANSACTION_MASK not in (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)


def has_keys(sys_flag: int) -> bool:
    """Tells whether a record with this system flag is entered into the key index."""
    return sys_flag & TRANSACTION_MASK != TRANSACTION_ROLLBACK


class Indexer:
    """Indexes records during recovery.

    `delay_levels_at` returns the delays of all levels that were in force when a commit-log offset was written; from
    them the due times of the schedule topic are computed, whose queue n holds delay level n + 1.
    """

    def __init__(self, queues: QueueTable, keys: KeyIndex, delay_levels_at: Callable[[int], tuple[int, ...]]) -> None:
        self._queues = queues
        self._keys = keys
        self._delay_levels_at = delay_levels_at

    def derived_tags_code(self, fields: RecordFields) -> int:
        """Computes the tags code of the record's queue entry; in the schedule and timer topics it is the due time."""
        if fields.topic == SCHEDULE_TOPIC:
            delays_ms = self._delay_levels_at(fields.commit_log_offset)
            # A message of a level that no longer exists is due at once.
            return fields.store_timestamp_ms + (delays_ms[fields.queue_id] if fields.queue_id < len(delays_ms) else 0)
        if fields.topic == TIMER_TOPIC:
            return timer_entry(decode_properties(fields.properties_text), fields.store_timestamp_ms)
        if "TAGS" not in fields.properties_text:
            return 0
        return tags_code(decode_properties(fields.properties_text).get(Property.TAGS))

    def index_again(self, fields: RecordFields, *, may_leave_gap: bool) -> str | None:
        """Indexes a record that recovery found. Returns a reason if its queue offset is taken already, else None.

        Holes fill a gap before the entry; where `may_leave_gap` is false, a gap raises IndexesStale.
        """
        if fields.commit_log_offset < self._queues.deleted_until(fields.topic):
            return None
        if has_queue_entry(fields.sys_flag):
            queue = self._queues.get_or_create(fields.topic, fields.queue_id)
            if fields.queue_offset < queue.max_offset:
                return f"queue offset {fields.queue_offset} of {fields.topic}/{fields.queue_id} is taken already"
            if fields.queue_offset > queue.max_offset:
                if not may_leave_gap:
                    raise IndexesStale(f"{fields.topic}/{fields.queue_id} lacks entries before {fields.queue_offset}")
                queue.put_holes(fields.queue_offset, fields.commit_log_offset)
            queue.reserve(1)
            queue.put(fields.commit_log_offset, fields.total_bytes, self.derived_tags_code(fields))
        keys = message_keys(fields.properties_text) if has_keys(fields.sys_flag) else []
        if keys:
            self._keys.reserve(len(keys), fields.commit_log_offset)
            self._keys.put(hash_topic(fields.topic), keys, fields.commit_log_offset, fields.store_timestamp_ms)
        return None
