"""Op messages: they say which halves have ended, and progress depends on which of them are flushed.

A half is ended by another record, its successor: its committed copy, its next version, or its copy among those given
up. The op message follows once the successor is as safe as the store's flush mode promises; one op message names
several ended halves (RocketMQ batches them likewise, for 3 s or 4096 bytes). So no op message survives a power cut that
took the successor; and when a kill loses an op message, the next start finds the successor, because it reads the log
from `scan_from` on. A rollback has no successor: its op message is all there is, and is written at once.

Until its op message is safe, an end is *open*: progress does not go past it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from broker.engine.store.errors import StoreError
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended
from broker.engine.transactions.half import op_message
from remoting.complaints import ComplaintLog
from remoting.wire.message_id import Host
from remoting.wire.names import OP_HALF_TOPIC

# Shorter than RocketMQ's `transactionOpBatchInterval` (3 s), so that a start finds few ends without an op message.
GATHER_S = 0.1
# RocketMQ's `transactionOpMsgMaxSize`.
OP_BYTES_MAX = 4_096
# After a failed write, of a full disk for example, it is tried again after so long.
RETRY_S = 1.0
# Op messages that a start would have to read are remembered one by one up to so many, then two neighbours as one.
MARKS_MAX = 1_024


class OpMessages:
    """Writes op messages, and knows which ends are still open.

    Callers: `Transactions` and its check-back, on the event loop.
    """

    def __init__(self, store: MessageStore, host: Host, complaints: ComplaintLog, clock: Callable[[], int]) -> None:
        """`host`: born and store host of the records. `clock`: ms since the epoch."""
        self._store = store
        self._host = host
        self._complaints = complaints
        self._clock = clock
        # Half queue offset -> the commit-log offset at or after which the record stands that ends it.
        self._open: dict[int, int] = {}
        self._gathered: list[int] = []
        self._gathered_chars = 0
        self._timer: asyncio.TimerHandle | None = None
        # (op queue offset, highest half offset named in it), in order.
        self._marks: deque[tuple[int, int]] = deque()
        self._next_op_offset = 0

    # ends of halves

    def begin(self, half_offset: int, from_offset: int | None = None) -> None:
        """Opens the end of a half: the record that ends it stands at `from_offset` or later, by default at the end of
        the log."""
        self._open[half_offset] = self._store.max_commit_log_offset if from_offset is None else from_offset

    def undo(self, half_offset: int) -> None:
        """Forgets an open end, because the record was not stored."""
        self._open.pop(half_offset, None)

    def follow(self, half_offset: int) -> None:
        """Puts the half into the next op message, because the record that ends it is safe."""
        self._gathered.append(half_offset)
        self._gathered_chars += len(str(half_offset)) + 1
        if self._gathered_chars >= OP_BYTES_MAX:
            self.write()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_S, self.write)

    def written(self, half_offsets: list[int], op: Appended) -> None:
        """Closes the ends of `half_offsets`, because `op`, the op message that names them, is safe."""
        for half_offset in half_offsets:
            self._open.pop(half_offset, None)
        self.remember(op.queue_offset, max(half_offsets))

    def write(self) -> None:
        """Appends an op message of the halves gathered so far; tries again later when the store refuses it."""
        self.stop()
        if not self._gathered:
            return
        ended = self._gathered
        try:
            op = self._store.append(op_message(ended, self._host, self._clock()))
        except StoreError as error:
            # With each end that follows, once there are enough of them for a message.
            words = "the op message of %d ended transactions is not stored yet: %s"
            self._complaints.error(OP_HALF_TOPIC, "not stored", words, len(ended), error)
            self._timer = asyncio.get_running_loop().call_later(RETRY_S, self.write)
            return
        self._gathered, self._gathered_chars = [], 0

        def flushed(error: Exception | None) -> None:
            # On an error the store has stopped and must be opened anew: recovery finds these ends in the log.
            if error is None:
                self.written(ended, op)

        self._store.when_flushed(op.commit_log_offset + op.total_bytes, flushed)

    def stop(self) -> None:
        """Cancels the timer of the next op message."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # progress

    def start_at(self, next_op_offset: int) -> None:
        """Sets the end of the op queue as it is when the broker starts."""
        self._next_op_offset = next_op_offset

    def remember(self, op_offset: int, highest_half_offset: int) -> None:
        """Remembers which halves a safe op message names, for `progress`. Call it in the order of the op offsets."""
        self._marks.append((op_offset, highest_half_offset))
        self._next_op_offset = max(self._next_op_offset, op_offset + 1)
        if len(self._marks) > MARKS_MAX:
            marks = [*self._marks]
            self._marks = deque(
                (first[0], max(first[1], second[1])) for first, second in zip(marks[::2], marks[1::2], strict=False)
            )
            self._marks.extend(marks[len(marks) & ~1 :])

    @property
    def lowest_open(self) -> int | None:
        """Returns the lowest half queue offset whose end is open, None when there is none."""
        return min(self._open, default=None)

    @property
    def scan_from(self) -> int:
        """Returns the commit-log offset from which on records may stand that end a half without a safe op message.

        Never behind the flushed offset: a power cut may take the log from there on, and other records will stand there.
        """
        return min([self._store.flushed_commit_log_offset, *self._open.values()])

    def progress(self, half_progress: int) -> int:
        """Returns the queue offset of the first op message that names a half at or after `half_progress`."""
        while self._marks and self._marks[0][1] < half_progress:
            self._marks.popleft()
        return self._marks[0][0] if self._marks else self._next_op_offset
