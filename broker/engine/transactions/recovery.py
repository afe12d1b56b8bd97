"""What the start finds out about transactions: which halves nobody decided, and which ends lack their op record.

1. The op records from the committed offset on name halves that have ended; so do later versions and copies that the
   log holds behind `scan_from`, whose op records a kill may have taken.
2. Every other half from the committed offset on is undecided. Its record is not read: when it is due, the check-back
   finds out at its first look.

Memory and time are those of the halves and op records behind the committed offsets, which `Transactions.tidy` bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from broker.engine.store.message_store import MessageStore
from broker.engine.transactions.half import HALF_QUEUE, ended_offsets, follows_on, is_successor
from broker.engine.transactions.progress import Progress
from remoting.wire.names import HALF_TOPIC, OP_HALF_TOPIC
from remoting.wire.stored_message import StoredMessage, decode_messages

# Op records read at once: a record holds some 4 KiB at the most.
_OP_READ_MAX = 64
_OP_READ_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Found:
    """`undecided`, `unrecorded`: half queue offsets, the latter ended without an op record. `marks`: (op queue
    offset, highest half offset that it names). `scanned_from`: where in the log reading began."""

    undecided: list[int]
    unrecorded: list[int]
    marks: list[tuple[int, int]]
    next_op_offset: int
    scanned_from: int


def recover(store: MessageStore, progress: Progress) -> Found:
    """`progress` as the last life left it. Call it before anything is appended."""
    first = _clamped(store, HALF_TOPIC, progress.half_offset)
    ended: set[int] = set()
    marks: list[tuple[int, int]] = []
    for op in _ops_from(store, _clamped(store, OP_HALF_TOPIC, progress.op_offset)):
        named = [offset for offset in ended_offsets(op) if offset >= first]
        ended.update(named)
        if named:
            marks.append((op.queue_offset, max(named)))
    places = {
        entry[0]: offset
        for offset in range(first, store.max_offset(HALF_TOPIC, HALF_QUEUE))
        if offset not in ended and (entry := store.queue_entry(HALF_TOPIC, HALF_QUEUE, offset)) is not None
    }
    scanned_from = max(progress.scan_from, min(places, default=store.max_commit_log_offset))
    scanned_from = min(scanned_from, store.max_commit_log_offset)
    unrecorded = sorted(set(_ended_in_log(store, places, scanned_from))) if places else []
    lacking = set(unrecorded)
    undecided = [offset for offset in places.values() if offset not in lacking]
    return Found(undecided, unrecorded, marks, store.max_offset(OP_HALF_TOPIC, HALF_QUEUE), scanned_from)


def _ops_from(store: MessageStore, queue_offset: int) -> Iterator[StoredMessage]:
    while queue_offset < store.max_offset(OP_HALF_TOPIC, HALF_QUEUE):
        result = store.read(OP_HALF_TOPIC, HALF_QUEUE, queue_offset, _OP_READ_MAX, _OP_READ_BYTES_MAX)
        yield from decode_messages(result.body)
        if result.next_begin_offset <= queue_offset:
            return
        queue_offset = result.next_begin_offset


def _ended_in_log(store: MessageStore, places: dict[int, int], scan_from: int) -> Iterator[int]:
    """Of the halves in `places` (commit-log offset to queue offset) those that some record follows on."""
    for fields in store.records_from(scan_from):
        source = follows_on(fields.topic, fields.sys_flag, fields.prepared_transaction_offset)
        if source is None or source not in places:
            continue
        record, half = store.message_at(fields.commit_log_offset), store.message_at(source)
        if record is not None and half is not None and is_successor(record, half):
            yield places[source]


def _clamped(store: MessageStore, topic: str, queue_offset: int) -> int:
    """A copied or rolled-back store may say more or less than its queue holds."""
    low, high = store.min_offset(topic, HALF_QUEUE), store.max_offset(topic, HALF_QUEUE)
    return max(low, min(queue_offset, high))
