"""Messages on their way into the log: what can be made of a draft before it has a place, and its record there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from broker.engine.store.consume_queue import ConsumeQueue
from broker.engine.store.indexer import has_queue_entry, keys_of
from broker.engine.store.layout import pack_record, record_bytes, stored_properties
from broker.engine.store.queue_table import QueueTable
from broker.engine.store.values import Appended, MessageDraft


class Prepared(NamedTuple):
    """A draft that can be stored: what its record and its index entries need, before it has a place."""

    draft: MessageDraft
    queue: ConsumeQueue
    properties: bytes
    keys: list[str]
    total_bytes: int
    has_entry: bool


def prepare(queues: QueueTable, draft: MessageDraft) -> Prepared:
    """Raises RecordRefused for what no record can hold, or no queue can be named."""
    queue = queues.get_or_create(draft.topic, draft.queue_id)
    properties = stored_properties(draft.properties_text)
    return Prepared(
        draft,
        queue,
        properties,
        keys_of(draft.sys_flag, draft.properties_text),
        record_bytes(draft, queue.topic_part, properties),
        has_queue_entry(draft.sys_flag),
    )


def pack(batch: Sequence[Prepared], start: int, now_ms: int) -> tuple[list[Appended], list[bytes]]:
    """Their places and their records, side by side from the commit-log offset `start` on."""
    taken: dict[ConsumeQueue, int] = {}
    appended: list[Appended] = []
    records: list[bytes] = []
    for draft, queue, properties, _, total_bytes, has_entry in batch:
        queue_offset = 0
        if has_entry:
            queue_offset = taken.get(queue, queue.max_offset)
            taken[queue] = queue_offset + 1
        records.append(
            pack_record(
                draft,
                queue.magic,
                queue.topic_part,
                properties,
                total_bytes=total_bytes,
                queue_offset=queue_offset,
                commit_log_offset=start,
                store_timestamp_ms=now_ms,
            )
        )
        appended.append(
            Appended(draft.topic, draft.queue_id, queue_offset, start, total_bytes, now_ms, draft.tags_code)
        )
        start += total_bytes
    return appended, records
