"""Prepares message drafts before their commit-log offset is known, and packs their records once it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from broker.engine.store.consume_queue import ConsumeQueue
from broker.engine.store.indexer import has_keys, has_queue_entry
from broker.engine.store.key_index import message_keys
from broker.engine.store.layout import pack_record, record_bytes, stored_properties
from broker.engine.store.queue_table import QueueTable
from broker.engine.store.values import Appended, MessageDraft
from remoting.wire.stored_message import TRANSACTION_MASK


class Prepared(NamedTuple):
    """A draft with everything that its record and index entries need, apart from their offsets."""

    draft: MessageDraft
    queue: ConsumeQueue
    properties: bytes
    keys: list[str]
    total_bytes: int
    has_entry: bool


def prepare(queues: QueueTable, draft: MessageDraft) -> Prepared:
    """Encodes the draft's properties, computes its size and keys, and finds its queue.

    Raises RecordRefused when the record or its queue cannot be made.
    """
    queue = queues.get_or_create(draft.topic, draft.queue_id)
    properties = stored_properties(draft.properties_text)
    total_bytes = record_bytes(draft, queue.topic_part, properties)
    keys = draft.keys if draft.keys is not None else message_keys(draft.properties_text)
    if not draft.sys_flag & TRANSACTION_MASK:
        return Prepared(draft, queue, properties, keys, total_bytes, has_entry=True)
    if not has_keys(draft.sys_flag):
        keys = []
    return Prepared(draft, queue, properties, keys, total_bytes, has_queue_entry(draft.sys_flag))


def pack(batch: Sequence[Prepared], start: int, now_ms: int) -> tuple[list[Appended], list[bytes]]:
    """Packs the records of `batch`, one behind the other from `start` on. Returns their offsets and their bytes."""
    next_offsets: dict[ConsumeQueue, int] = {}
    appended: list[Appended] = []
    records: list[bytes] = []
    for draft, queue, properties, _, total_bytes, has_entry in batch:
        queue_offset = 0
        if has_entry:
            queue_offset = next_offsets.get(queue, queue.max_offset)
            next_offsets[queue] = queue_offset + 1
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
