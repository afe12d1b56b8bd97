"""Which timers were delivered: one bit for each since the oldest that waits, kept in `timer/progress`.

The log is authoritative: a delivered copy carries the queue offset after its source message's in the field
`prepared_transaction_offset`. The file says up to which commit-log offset it counts the copies; the log behind that is
read again at a start. It never counts a copy that is not flushed, and is never flushed itself: an older one only costs
reading more of the log. So a kill neither loses nor repeats a delivery, and a power cut repeats only deliveries whose
copies it took.

    | 8 magic | 8 first queue offset | 8 commit-log offset that it counts up to | 8 bytes of bits | 4 crc | bits |
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from broker.engine.store.files import Backup, FileLayer

FILE_NAME = "progress"
_HEADER = struct.Struct(">8sqqqI")
_MAGIC = b"mqatimp1"
# Bytes at the front whose bits are all set are dropped when there are so many.
TRIM_BYTES = 64 * 1024


class Delivered:
    """The set of the delivered queue offsets; `lowest` is the first that is not in it."""

    def __init__(self, lowest: int = 0, bits: bytes = b"") -> None:
        """`bits`: one per queue offset, from the byte in which `lowest` lies, the least bit first."""
        self._base = lowest - lowest % 8
        self._bits = bytearray(bits)
        self.lowest = lowest
        self._advance_lowest()

    def __contains__(self, queue_offset: int) -> bool:
        return queue_offset < self.lowest or self._has(queue_offset)

    def add(self, queue_offset: int) -> bool:
        """Adds `queue_offset`; returns False when it was in the set already."""
        if queue_offset in self:
            return False
        place = queue_offset - self._base
        if place >> 3 >= len(self._bits):
            self._bits.extend(bytes((place >> 3) + 1 - len(self._bits)))
        self._bits[place >> 3] |= 1 << (place & 7)
        if queue_offset == self.lowest:
            self._advance_lowest()
        return True

    def within(self, low: int, high: int) -> Delivered:
        """Returns the set for a queue that holds `low` to `high`: all offsets below `low`, none from `high` on."""
        lowest = min(max(self.lowest, low), high)
        if lowest < self._base:
            return Delivered(lowest)
        bits = self._bits[(lowest - self._base) >> 3 : (high - self._base + 7) >> 3]
        if bits and high % 8 and (high >> 3) - (lowest >> 3) < len(bits):
            bits[-1] &= (1 << high % 8) - 1
        return Delivered(lowest, bytes(bits))

    def missing(self, first: int, end: int) -> int:
        """Returns how many queue offsets from `first` to `end` are not in the set."""
        first = max(first, self.lowest)
        if end <= first:
            return 0
        start = (first - self._base) >> 3
        bits = int.from_bytes(self._bits[start : (end - self._base + 7) >> 3], "little")
        bits >>= first & 7
        return end - first - (bits & ((1 << end - first) - 1)).bit_count()

    def as_bits(self) -> bytes:
        """Returns the bits from the byte in which `lowest` lies on."""
        return bytes(self._bits[(self.lowest - self._base) >> 3 :])

    def _has(self, queue_offset: int) -> bool:
        place = queue_offset - self._base
        return place >> 3 < len(self._bits) and bool(self._bits[place >> 3] >> (place & 7) & 1)

    def _advance_lowest(self) -> None:
        while self._has(self.lowest):
            place = self.lowest - self._base
            self.lowest += 8 if not place & 7 and self._bits[place >> 3] == 0xFF else 1
        full = (self.lowest - self._base) >> 3
        if full >= TRIM_BYTES:
            del self._bits[:full]
            self._base += full * 8


class TimerProgress(NamedTuple):
    """The content of the file. `counted_to`: the commit-log offset up to which all copies are counted."""

    lowest: int
    counted_to: int
    bits: bytes


class TimerProgressFile:
    """Reads and replaces `timer/progress`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME

    def __str__(self) -> str:
        return str(self._path)

    def read(self) -> TimerProgress | None:
        """Returns the file's content; None when there is no file, or a damaged one. Raises OSError."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        if len(data) < _HEADER.size:
            return None
        magic, lowest, counted_to, size, crc = _HEADER.unpack_from(data)
        bits = data[_HEADER.size :]
        if magic != _MAGIC or size != len(bits) or crc != crc32(bits, crc32(data[: _HEADER.size - 4])):
            return None
        return TimerProgress(lowest, counted_to, bits)

    def write(self, progress: TimerProgress) -> None:
        """Replaces the file. Raises OSError; the previous file is still there then."""
        head = _HEADER.pack(_MAGIC, progress.lowest, progress.counted_to, len(progress.bits), 0)[:-4]
        content = head + struct.pack(">I", crc32(progress.bits, crc32(head))) + progress.bits
        FileLayer().replace(self._path, content, Backup.NONE, flushes=False)
