"""Recovery of transactions when the broker starts: which halves are undecided, and which ended ones lack an op message.

1. Halves have ended that the op messages from the committed offset on name; and so have those of which the log holds a
   successor from `scan_from` on, whose op message a kill may have lost. A power cut may lose a half that was not
   flushed and keep its successor: that one is known by its message, and ends the latest half of it that is left.
2. Every other half from the committed offset on is undecided. Its record is not read now: the check-back does that when
   it is driven first, and finds when the half is due.

Memory and time are those of the halves and op messages after the committed offsets, which `Transactions.tidy` bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from broker.engine.store.message_store import MessageStore
from broker.engine.transactions.half import HALF_QUEUE, ended_offsets, follows_on, is_successor
from broker.engine.transactions.progress import Progress
from remoting.wire.names import HALF_TOPIC, OP_HALF_TOPIC
from remoting.wire.stored_message import StoredMessage, decode_messages

# Op messages read at once: a record holds some 4 KiB at the most.
OP_READ_MAX = 64
_OP_READ_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Found:
    """The result of recovery.

    `undecided`, `unrecorded`: half queue offsets, the latter of halves that ended without an op message. `marks`: (op
    queue offset, highest half offset that it names). `scanned_from`: the commit-log offset at which reading began.
    """

    undecided: list[int]
    unrecorded: list[int]
    marks: list[tuple[int, int]]
    next_op_offset: int
    scanned_from: int


def recover(store: MessageStore, progress: Progress) -> Found:
    """Finds the undecided halves, from the progress that the broker wrote before. Call it before the first append."""
    first = _clamped(store, HALF_TOPIC, progress.half_offset)
    ended: set[int] = set()
    marks: list[tuple[int, int]] = []
    for op in _ops_from(store, _clamped(store, OP_HALF_TOPIC, progress.op_offset)):
        named = [offset for offset in ended_offsets(op) if offset >= first and _is_stored_before(store, offset, op)]
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


def _is_stored_before(store: MessageStore, half_offset: int, op: StoredMessage) -> bool:
    """Returns whether the half at the queue offset can be the one that `op` names, not one that got its place.

    A power cut may take a half that was not flushed from the end of its queue, and keep the op message about it.
    """
    entry = store.queue_entry(HALF_TOPIC, HALF_QUEUE, half_offset)
    return entry is not None and entry[0] < op.commit_log_offset


def _ops_from(store: MessageStore, queue_offset: int) -> Iterator[StoredMessage]:
    while queue_offset < store.max_offset(OP_HALF_TOPIC, HALF_QUEUE):
        result = store.read(OP_HALF_TOPIC, HALF_QUEUE, queue_offset, OP_READ_MAX, _OP_READ_BYTES_MAX)
        yield from decode_messages(result.body)
        if result.next_begin_offset <= queue_offset:
            return
        queue_offset = result.next_begin_offset


def _ended_in_log(store: MessageStore, places: dict[int, int], scan_from: int) -> Iterator[int]:
    """Yields the queue offsets of the halves in `places` (commit-log offset to queue offset) that have a successor."""
    of_lost: list[StoredMessage] = []
    for fields in store.records_from(scan_from):
        source = follows_on(fields.topic, fields.sys_flag, fields.prepared_transaction_offset)
        if source is None or (source < scan_from and source not in places):
            continue
        half = store.message_at(source)
        if half is not None and source not in places:
            continue
        record = store.message_at(fields.commit_log_offset)
        if record is not None and half is None:
            of_lost.append(record)
        elif record is not None and half is not None and is_successor(record, half):
            yield places[source]
    if of_lost:
        yield from _ended_by_successors_of_lost(store, places, of_lost)


def _ended_by_successors_of_lost(
    store: MessageStore, places: dict[int, int], successors: list[StoredMessage]
) -> Iterator[int]:
    """Yields the queue offsets of the halves whose next version is lost, while what followed on that one is there."""
    by_key: defaultdict[str | None, list[StoredMessage]] = defaultdict(list)
    for commit_log_offset in sorted(places):
        if (half := store.message_at(commit_log_offset)) is not None:
            by_key[half.unique_key].append(half)
    for record in successors:
        earlier = [half for half in by_key[record.unique_key] if half.commit_log_offset < record.commit_log_offset]
        if earlier and is_successor(record, earlier[-1]):
            yield places[earlier[-1].commit_log_offset]


def _clamped(store: MessageStore, topic: str, queue_offset: int) -> int:
    """Clamps the queue offset to the queue's ends, which it may lie outside of in a store copied or rolled back."""
    low, high = store.min_offset(topic, HALF_QUEUE), store.max_offset(topic, HALF_QUEUE)
    return max(low, min(queue_offset, high))
