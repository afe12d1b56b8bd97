"""From a record to its entries in the consume queue and the key index: one rule for appends and for recovery.

RocketMQ's `ReputMessageService` with `CommitLogDispatcherBuildConsumeQueue` and `…BuildIndex`. Prepared and rolled
back transaction records get no queue entry and no queue offset; rolled back ones no keys either.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.engine.store.due_times import timer_entry
from broker.engine.store.errors import IndexesStale
from broker.engine.store.key_index import KeyIndex, message_keys
from broker.engine.store.layout import RecordFacts, hash_topic
from broker.engine.store.queue_table import QueueTable
from remoting.wire.names import SCHEDULE_TOPIC, TIMER_TOPIC
from remoting.wire.properties import Property, decode_properties
from remoting.wire.stored_message import TRANSACTION_MASK, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from remoting.wire.tags import tags_code


def has_queue_entry(sys_flag: int) -> bool:
    return sys_flag & TRANSACTION_MASK not in (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)


def has_keys(sys_flag: int) -> bool:
    return sys_flag & TRANSACTION_MASK != TRANSACTION_ROLLBACK


class Indexer:
    """`delay_levels_at` gives the due times of the schedule topic, whose queue n holds level n + 1: how long each level
    waited when that place of the log was written."""

    def __init__(self, queues: QueueTable, keys: KeyIndex, delay_levels_at: Callable[[int], tuple[int, ...]]) -> None:
        self._queues = queues
        self._keys = keys
        self._delay_levels_at = delay_levels_at

    def derived_tags_code(self, facts: RecordFacts) -> int:
        """The tags code that a record's queue entry must have, from the record alone."""
        if facts.topic == SCHEDULE_TOPIC:
            delays_ms = self._delay_levels_at(facts.commit_log_offset)
            # A level that nobody knows any more has waited long enough.
            return facts.store_timestamp_ms + (delays_ms[facts.queue_id] if facts.queue_id < len(delays_ms) else 0)
        if facts.topic == TIMER_TOPIC:
            return timer_entry(decode_properties(facts.properties_text), facts.store_timestamp_ms)
        if "TAGS" not in facts.properties_text:
            return 0
        return tags_code(decode_properties(facts.properties_text).get(Property.TAGS))

    def index_again(self, facts: RecordFacts, *, may_leave_gap: bool) -> str | None:
        """Indexes a record that recovery found; says why when it cannot belong where it claims to.

        Raises IndexesStale when its queue lacks entries before it and `may_leave_gap` is false.
        """
        if facts.commit_log_offset < self._queues.deleted_until(facts.topic):
            return None
        if has_queue_entry(facts.sys_flag):
            queue = self._queues.get_or_create(facts.topic, facts.queue_id)
            if facts.queue_offset < queue.max_offset:
                return f"queue offset {facts.queue_offset} of {facts.topic}/{facts.queue_id} is taken already"
            if facts.queue_offset > queue.max_offset:
                if not may_leave_gap:
                    raise IndexesStale(f"{facts.topic}/{facts.queue_id} lacks entries before {facts.queue_offset}")
                queue.put_holes(facts.queue_offset, facts.commit_log_offset)
            queue.reserve(1)
            queue.put(facts.commit_log_offset, facts.total_bytes, self.derived_tags_code(facts))
        keys = message_keys(facts.properties_text) if has_keys(facts.sys_flag) else []
        if keys:
            self._keys.reserve(len(keys), facts.commit_log_offset)
            self._keys.put(hash_topic(facts.topic), keys, facts.commit_log_offset, facts.store_timestamp_ms)
        return None
