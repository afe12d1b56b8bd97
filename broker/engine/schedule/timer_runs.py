"""The order in which timers fall due: an index on the disk of any size, of which a few KiB per file are in memory.

New timers are kept in a heap; when it holds `PENDING_MAX`, they are written, sorted, to a file of their own, a run. The
next timer due is the least of the heap's first and the runs' first ones. Each run is read block by block.

    timer/<first queue offset, 20 digits>.run
    | 8 magic | 8 first | 8 end queue offset | 8 count | 4 crc |   then blocks of up to 256 entries and their 4 crc
    entry   | 8 due time ms | 8: bit 62 set for a message, clear for a delete marker; queue offset |

All of it is derived from the timer topic's queue: a run stands for the queue offsets from `first` to `end`, and one
that is missing, damaged, or does not fit the queue is built again from there. So no run is flushed, and a kill between
any two writes costs reading some entries again. An entry may come twice: callers keep track of the delivered ones.
"""

from __future__ import annotations

import heapq
import logging
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from broker.engine.store.files import FileLayer

logger = logging.getLogger(__name__)

# Timers in a run: writing it takes about 10 ms of the event loop, and until then they take 1.5 MiB of memory.
PENDING_MAX = 8_192
# A run stands for no more queue offsets, even if few of them wait: so many are read again when the run is damaged.
RUN_RANGE_MAX = 8 * PENDING_MAX
BLOCK_ENTRIES = 256
_HEADER = struct.Struct(">8sqqqI")
_MAGIC = b"mqatimr1"
_ENTRY = struct.Struct(">qQ")
_CRC = struct.Struct(">I")
BLOCK_BYTES = BLOCK_ENTRIES * _ENTRY.size + _CRC.size
_MESSAGE_BIT = 1 << 62


class Timer(NamedTuple):
    """One entry of the order. At the same millisecond delete markers come first, then what arrived first."""

    due_ms: int
    is_message: bool
    queue_offset: int


class RunDamaged(Exception):
    """Raised when a run cannot be read; `first` and `end` are the queue offsets that it stands for."""

    def __init__(self, path: Path, first: int, end: int, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.first = first
        self.end = end


class Run:
    """A file of sorted timers, read forward. `head` is its next entry, None at the end."""

    def __init__(self, path: Path, first: int, end: int, count: int) -> None:
        self.path = path
        self.first = first
        self.end = end
        self._count = count
        self._next = 0
        self._block = b""
        self.head: Timer | None = None

    @classmethod
    def write(cls, folder: Path, first: int, end: int, timers: Iterable[Timer]) -> Run:
        """Writes the timers of the queue offsets `first` to `end` to a file. Raises OSError.

        A file that a kill cut off is recognised by its checksums.
        """
        entries = [_pack(timer) for timer in sorted(timers)]
        path = folder / f"{first:020d}.run"
        head = _HEADER.pack(_MAGIC, first, end, len(entries), 0)[:-4]
        parts = [head, _CRC.pack(crc32(head))]
        for start in range(0, len(entries), BLOCK_ENTRIES):
            block = b"".join(entries[start : start + BLOCK_ENTRIES])
            parts += (block, _CRC.pack(crc32(block)))
        folder.mkdir(exist_ok=True)
        path.write_bytes(b"".join(parts))
        return cls(path, first, end, len(entries))

    @classmethod
    def open(cls, path: Path) -> Run | None:
        """Opens a run; returns None when its header is damaged or cannot be read."""
        try:
            with path.open("rb") as file:
                head = file.read(_HEADER.size)
        except OSError as error:
            logger.error("%s cannot be read: %s", path, error)
            return None
        if len(head) < _HEADER.size:
            return None
        magic, first, end, count, crc = _HEADER.unpack(head)
        if magic != _MAGIC or crc != crc32(head[:-4]) or path.name != f"{first:020d}.run":
            return None
        return cls(path, first, end, count)

    def advance(self) -> None:
        """Sets `head` to the next entry. Raises RunDamaged."""
        if self._next >= self._count:
            self.head = None
            return
        index = self._next % BLOCK_ENTRIES
        if index == 0:
            self._block = self._read_block(self._next // BLOCK_ENTRIES)
        self.head = _unpack(self._block, index)
        self._next += 1

    def queue_offsets(self) -> Iterator[int]:
        """Yields the queue offsets of all entries, in the order of the file. Raises RunDamaged."""
        for number in range((self._count + BLOCK_ENTRIES - 1) // BLOCK_ENTRIES):
            for _, second in _ENTRY.iter_unpack(self._read_block(number)):
                yield second & ~_MESSAGE_BIT

    def _read_block(self, number: int) -> bytes:
        size = min(BLOCK_ENTRIES, self._count - number * BLOCK_ENTRIES) * _ENTRY.size
        try:
            with self.path.open("rb") as file:
                file.seek(_HEADER.size + number * BLOCK_BYTES)
                data = file.read(size + _CRC.size)
        except OSError as error:
            raise RunDamaged(self.path, self.first, self.end, error.strerror or str(error)) from error
        if len(data) < size + _CRC.size or _CRC.unpack_from(data, size)[0] != crc32(data[:size]):
            raise RunDamaged(self.path, self.first, self.end, f"block {number} is damaged")
        return data[:size]


class TimerOrder:
    """The waiting timers in the order of their due times: a heap of the newest, and the runs.

    Callers: `TimerDelivery` and its index, on the event loop. Timers that were taken are no longer in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pending: list[Timer] = []
        self._pending_first: int | None = None
        self._heads: list[tuple[Timer, int, Run]] = []
        self._opened = 0

    def open_runs(self, low: int, high: int) -> list[Run]:
        """Returns the sound runs that end after the queue offset `low` and not beyond `high`; removes all others.

        Those are gone for good then: after a power cut one from beyond the queue's end could come back, and fit a queue
        that has got other timers at these offsets meanwhile. Raises OSError.
        """
        paths = sorted(self._folder.glob("*.run"))
        runs = [run for path in paths if (run := Run.open(path)) is not None and low < run.end <= high]
        removed = set(paths) - {run.path for run in runs}
        for path in removed:
            path.unlink()
        if removed:
            FileLayer().sync_path(self._folder)
        return runs

    def add_run(self, run: Run) -> None:
        """Adds the run's timers. Raises RunDamaged."""
        run.advance()
        self._offer(run)

    def drop(self, path: Path) -> None:
        """Removes a damaged run; the caller adds its timers from the queue."""
        self._heads = [head for head in self._heads if head[2].path != path]
        heapq.heapify(self._heads)
        path.unlink(missing_ok=True)

    def write_run(self, first: int, end: int, timers: list[Timer]) -> None:
        """Adds the timers of the queue offsets `first` to `end` as a run; in memory when it cannot be written."""
        try:
            self.add_run(Run.write(self._folder, first, end, timers))
        except (OSError, RunDamaged) as error:
            logger.error("timers stay in memory: %s cannot be written: %s", self._folder, error)
            for timer in timers:
                heapq.heappush(self._pending, timer)

    def add(self, timer: Timer) -> None:
        """Adds a new timer, the next one of the queue."""
        if self._pending_first is None or not self._pending:
            self._pending_first = timer.queue_offset
        heapq.heappush(self._pending, timer)
        new_count = timer.queue_offset + 1 - self._pending_first
        if (len(self._pending) >= PENDING_MAX <= 2 * new_count) or new_count >= RUN_RANGE_MAX:
            self._spill(timer.queue_offset + 1)

    def put_back(self, timers: Iterable[Timer]) -> None:
        """Adds timers again that were taken but not delivered."""
        for timer in timers:
            heapq.heappush(self._pending, timer)

    @property
    def first(self) -> Timer | None:
        """Returns the timer that falls due next, None when none waits."""
        if not self._heads:
            return self._pending[0] if self._pending else None
        head = self._heads[0][0]
        return min(head, self._pending[0]) if self._pending else head

    def take(self) -> Timer | None:
        """Removes and returns the timer that falls due next.

        Raises RunDamaged; the caller indexes the run's range again, in which that timer is, too.
        """
        if not self._heads or (self._pending and self._pending[0] < self._heads[0][0]):
            return heapq.heappop(self._pending) if self._pending else None
        timer, _, run = heapq.heappop(self._heads)
        run.advance()
        self._offer(run)
        return timer

    def _offer(self, run: Run) -> None:
        if run.head is None:
            run.path.unlink(missing_ok=True)
            return
        self._opened += 1
        heapq.heappush(self._heads, (run.head, self._opened, run))

    def _spill(self, end: int) -> None:
        assert self._pending_first is not None, "something is pending"
        first = self._pending_first
        # A run holds no timers outside its range: after a kill those that were put back come from their own ranges.
        timers = [timer for timer in self._pending if timer.queue_offset >= first]
        self._pending = [timer for timer in self._pending if timer.queue_offset < first]
        heapq.heapify(self._pending)
        self._pending_first = None
        self.write_run(first, end, timers)


def _pack(timer: Timer) -> bytes:
    return _ENTRY.pack(timer.due_ms, timer.queue_offset | (_MESSAGE_BIT if timer.is_message else 0))


def _unpack(block: bytes, index: int) -> Timer:
    due_ms, second = _ENTRY.unpack_from(block, index * _ENTRY.size)
    return Timer(due_ms, bool(second & _MESSAGE_BIT), second & ~_MESSAGE_BIT)
