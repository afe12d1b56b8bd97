"""Writing down which halves have ended, and knowing how far that is certain.

What ends a half is another record: its committed copy, its next version, or its copy among those given up. The op
record follows once that one is as safe as the store's flush mode promises, several ends in one (RocketMQ gathers them
likewise, for 3 s or 4096 bytes). So an op record never outlives a message that it speaks of; and a copy whose op
record was lost by a kill is found again by the start, which reads the log from `scan_from` on. A rollback has no
copy: its op record is all there is, and is written at once.

Until its op record is safe, an end is *open*: progress does not go past it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from broker.engine.store.errors import StoreError
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended
from broker.engine.transactions.half import op_record
from remoting.wire.message_id import Host

logger = logging.getLogger(__name__)

# Shorter than RocketMQ's `transactionOpBatchInterval` (3 s), so that a start has little to find out.
GATHER_S = 0.1
# RocketMQ's `transactionOpMsgMaxSize`.
OP_BYTES_MAX = 4_096
# A full disk is no reason to try in a busy loop.
RETRY_S = 1.0
# Op records that a start would have to read are remembered one by one up to here, then in twos.
_MARKS_MAX = 1_024


class OpRecords:
    """`host` stands in the records. Callers: `Transactions` and its check-back, on the event loop."""

    def __init__(self, store: MessageStore, host: Host, clock: Callable[[], int]) -> None:
        self._store = store
        self._host = host
        self._clock = clock
        # Half queue offset -> where in the log the record may begin that ends it.
        self._open: dict[int, int] = {}
        self._gathered: list[int] = []
        self._gathered_chars = 0
        self._timer: asyncio.TimerHandle | None = None
        # (op queue offset, highest half offset named in it), in order.
        self._marks: deque[tuple[int, int]] = deque()
        self._next_op_offset = 0

    # what ends

    def begin(self, half_offset: int, from_offset: int | None = None) -> None:
        """It ends with a record that comes next, or at `from_offset` or later."""
        self._open[half_offset] = self._store.max_commit_log_offset if from_offset is None else from_offset

    def undo(self, half_offset: int) -> None:
        """That record was not stored."""
        self._open.pop(half_offset, None)

    def follow(self, half_offset: int) -> None:
        """The record that ends it is safe: an op record follows."""
        self._gathered.append(half_offset)
        self._gathered_chars += len(str(half_offset)) + 1
        if self._gathered_chars >= OP_BYTES_MAX:
            self.write()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_S, self.write)

    def written(self, half_offsets: list[int], op: Appended) -> None:
        """An op record that names them is safe."""
        for half_offset in half_offsets:
            self._open.pop(half_offset, None)
        self.remember(op.queue_offset, max(half_offsets))

    def write(self) -> None:
        """Appends the op record of what was gathered."""
        self.stop()
        if not self._gathered:
            return
        ended = self._gathered
        try:
            op = self._store.append(op_record(ended, self._host, self._clock()))
        except StoreError as error:
            logger.error("the ends of %d transactions are not written down yet: %s", len(ended), error)
            self._timer = asyncio.get_running_loop().call_later(RETRY_S, self.write)
            return
        self._gathered, self._gathered_chars = [], 0

        def flushed(error: Exception | None) -> None:
            # A fenced store is opened anew, and then these are found in the log.
            if error is None:
                self.written(ended, op)

        self._store.when_flushed(op.commit_log_offset + op.total_bytes, flushed)

    def stop(self) -> None:
        """No timer is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # how far it is certain

    def start_at(self, next_op_offset: int) -> None:
        """Where the op queue ends when the broker starts."""
        self._next_op_offset = next_op_offset

    def remember(self, op_offset: int, highest_half_offset: int) -> None:
        """In the order of their offsets."""
        self._marks.append((op_offset, highest_half_offset))
        self._next_op_offset = max(self._next_op_offset, op_offset + 1)
        if len(self._marks) > _MARKS_MAX:
            marks = [*self._marks]
            self._marks = deque(
                (first[0], max(first[1], second[1])) for first, second in zip(marks[::2], marks[1::2], strict=False)
            )
            self._marks.extend(marks[len(marks) & ~1 :])

    @property
    def lowest_open(self) -> int | None:
        return min(self._open, default=None)

    @property
    def scan_from(self) -> int:
        """Before this commit-log offset nothing ended a half of which no op record is safe.

        Never in what a power cut may take: other records will stand there then.
        """
        return min([self._store.flushed_commit_log_offset, *self._open.values()])

    def progress(self, half_progress: int) -> int:
        """The first op record that still says something of halves from `half_progress` on."""
        while self._marks and self._marks[0][1] < half_progress:
            self._marks.popleft()
        return self._marks[0][0] if self._marks else self._next_op_offset
