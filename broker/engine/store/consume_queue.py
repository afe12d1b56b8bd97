"""One consume queue: where each message of a queue is in the commit log, 20 bytes each (RocketMQ's `ConsumeQueue`).

    consumequeue/<topic>/<queue id>/<20-digit byte offset>      files of a fixed number of entries, 300,000 by default

Derived from the log and rebuilt from it, so entries are stored through a memory mapping, without a system call. A file
has its full size at once, but its disk space is allocated in small steps ahead of the entries: on a full disk the
allocation of a step fails (`reserve`), never the storing of an entry (`put`).
Event loop only.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from zlib import crc32

from broker.engine.store.errors import IndexesStale
from broker.engine.store.files import data_chunks, read_range, read_written
from broker.engine.store.layout import HOLE_BYTES, QUEUE_ENTRY, QUEUE_ENTRY_BYTES, file_name, hash_topic
from broker.engine.store.mapped_files import MappedFiles
from remoting.wire.stored_message import encode_topic

Entry = tuple[int, int, int]  # commit-log offset, record size, tags code

# Number of entries in a file, and the CRC32 of their bytes.
Sum = tuple[int, int]

# Space is allocated in steps that double: one page for a queue of a few messages, few calls for a busy one.
_STEP_BYTES_MIN = 4096
_STEP_BYTES_MAX = 256 * 1024
# What RocketMQ stores in place of the entries before the first one that a queue still has.
_PLACEHOLDER: Entry = (0, HOLE_BYTES, 0)


class ConsumeQueue:
    """A consume queue. `max_offset` is the next queue offset, `synced_offset` its value at the last flush of the files.

    `magic`, `topic_part` and `topic_crc` are derived from the topic once, for its records and the hashes of its keys.
    """

    def __init__(self, topic: str, queue_id: int, folder: Path, entries_per_file: int, mapped: MappedFiles) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.max_offset = 0
        self.synced_offset = 0
        # The one in the last entry (in a hole's, that of the next sound record). When it is below the log's first
        # offset, no message of the queue can be read any more.
        self.last_commit_log_offset = -1
        self.magic, self.topic_part = encode_topic(topic)
        self.topic_crc = hash_topic(topic)
        self._folder = folder
        self._entries_per_file = entries_per_file
        self._file_bytes = entries_per_file * QUEUE_ENTRY_BYTES
        self._mapped = mapped
        # The queue offset of the first entry that has a file, and one past the last one whose space is allocated.
        self._first_offset = 0
        self._allocated_end = 0
        # The queue goes on at `max_offset` without any file; the next `reserve` creates the one that holds this offset.
        self._is_file_missing = False
        # (the log's min offset, the queue's min offset computed for it)
        self._min_offset: tuple[int, int] | None = None
        self._sums: dict[int, Sum] = {}
        # The file used last, and the queue offset of its first entry.
        self._file_first = -1
        self._file_map: mmap.mmap | None = None

    # --- opening

    def load(self, log_end: int | None, sums: Mapping[int, Sum] = MappingProxyType({})) -> None:
        """Reads the files and zeroes the entries of records from `log_end` on (None: all entries are trusted).

        `sums`: what `sum_up` returned at the last close, by the queue offset of a file's first entry. Raises
        IndexesStale when a file between others is missing, or when a file's content does not have its sum.
        """
        starts = sorted(int(name) for name in os.listdir(self._folder) if name.isdigit())
        if not starts:
            return
        if starts != list(range(starts[0], starts[-1] + 1, self._file_bytes)):
            raise IndexesStale(f"files are missing in {self._folder}")
        self._first_offset = starts[0] // QUEUE_ENTRY_BYTES
        limit = log_end if log_end is not None else 1 << 63
        for start in reversed(starts):
            first = start // QUEUE_ENTRY_BYTES
            content, has_more = read_written(self._path(first), self._file_bytes)
            count = _count_below(content, limit)
            self._check_sum(first, content, count, sums)
            self.max_offset = self._allocated_end = self.synced_offset = first + count
            if count:
                self.last_commit_log_offset = QUEUE_ENTRY.unpack_from(content, (count - 1) * QUEUE_ENTRY_BYTES)[0]
            entries_end = count * QUEUE_ENTRY_BYTES
            if log_end is not None and (has_more or content.count(0, entries_end) != len(content) - entries_end):
                self._zero_behind(first, count)
            if count or start == starts[0]:
                break
            self._mapped.close(self._path(first))
            self._path(first).unlink()
        for first in range(self._first_offset, self.max_offset - self._entries_per_file, self._entries_per_file):
            if first in sums:
                content, _ = read_written(self._path(first), self._file_bytes)
                self._check_sum(first, content, self._entries_per_file, sums)

    def _check_sum(self, first: int, content: bytes, count: int, sums: Mapping[int, Sum]) -> None:
        """Compares `content` with the sum of its file. Raises IndexesStale when they differ.

        The sum is kept for `sum_up` if it covers no more than `count` entries.
        """
        known = sums.get(first)
        if known is None:
            return
        summed_count, crc = known
        if crc32(content[: summed_count * QUEUE_ENTRY_BYTES]) != crc:
            raise IndexesStale(f"{self._path(first)} is not what was written: a bit of it changed")
        if summed_count <= count:
            self._sums[first] = known

    def sum_up(self) -> dict[int, Sum]:
        """Returns, by the queue offset of each file's first entry, the number of its entries and their CRC32.

        Reads only the entries that were added since the last call. Raises OSError.
        """
        if self._is_file_missing:
            return {}
        sums: dict[int, Sum] = {}
        for first in range(self._first_offset, self.max_offset, self._entries_per_file):
            count = min(self.max_offset - first, self._entries_per_file)
            summed_count, crc = self._sums.get(first, (0, 0))
            if summed_count < count:
                # Not through a mapping: the number of mapped files is limited, and there may be more queues.
                start = summed_count * QUEUE_ENTRY_BYTES
                crc = crc32(read_range(self._path(first), start, count * QUEUE_ENTRY_BYTES - start), crc)
            sums[first] = count, crc
        self._sums = sums
        return sums

    def _zero_behind(self, first: int, count: int) -> None:
        """Zeroes the file behind its first `count` entries, so that old bytes are never read as entries."""
        mapping = self._file(first)
        for position, chunk in data_chunks(self._path(first), count * QUEUE_ENTRY_BYTES, self._file_bytes):
            if chunk.count(0) != len(chunk):
                mapping[position : position + len(chunk)] = bytes(len(chunk))
                self.synced_offset = max(first, self.max_offset - 1)

    def _partition(self, first: int, count: int, is_before: Callable[[Entry], bool]) -> int:
        """Returns how many of `count` entries from `first` on satisfy `is_before`, by binary search.

        `is_before` must be true for a first part of them and false for the rest.
        """
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if is_before(self._entry(first + middle)):
                low = middle + 1
            else:
                high = middle
        return low

    # --- files

    def _path(self, queue_offset: int) -> Path:
        start = queue_offset - queue_offset % self._entries_per_file
        return self._folder / file_name(start * QUEUE_ENTRY_BYTES)

    def _file(self, queue_offset: int) -> mmap.mmap:
        """Returns the mapped file that holds the entry."""
        first = queue_offset - queue_offset % self._entries_per_file
        mapping = self._file_map
        if mapping is None or first != self._file_first or mapping.closed:
            mapping = self._mapped.open(self._path(queue_offset), self._file_bytes)
            self._file_first, self._file_map = first, mapping
        return mapping

    def _entry(self, queue_offset: int) -> Entry:
        position = queue_offset % self._entries_per_file * QUEUE_ENTRY_BYTES
        offset, size, code = QUEUE_ENTRY.unpack_from(self._file(queue_offset), position)
        return offset, size, code

    def close(self) -> None:
        """Closes the files' mappings, so that the files can be deleted."""
        for path in self._folder.glob("[0-9]*"):
            self._mapped.close(path)
        self._file_map = None

    def changed_files(self) -> list[Path]:
        """Returns the files that changed since the last call, with their folders; they count as flushed from now on.

        The folders are named because they must be flushed too, for a new file's name.
        """
        if self.synced_offset == self.max_offset:
            return []
        first = self.synced_offset - self.synced_offset % self._entries_per_file
        self.synced_offset = self.max_offset
        paths = [self._path(start) for start in range(first, self.max_offset, self._entries_per_file)]
        return [*paths, self._folder, self._folder.parent, self._folder.parent.parent]

    # --- writing

    def reserve(self, count: int) -> None:
        """Allocates space for `count` more entries and opens their file: `put` must not need a descriptor.

        Raises OSError; the queue is then unchanged, apart from space that may be allocated already.
        """
        if self._is_file_missing and count:
            self._fill_before(self.max_offset)
        while self._allocated_end < self.max_offset + count:
            self._allocate_step()
        if count:
            self._file(self.max_offset)

    def _allocate_step(self) -> None:
        index = self._allocated_end % self._entries_per_file
        path = self._path(self._allocated_end)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._mapped.open(path, self._file_bytes)
        have = index * QUEUE_ENTRY_BYTES
        step = min(max(_STEP_BYTES_MIN, have), _STEP_BYTES_MAX)
        want = have + QUEUE_ENTRY_BYTES + step
        want = min(want - want % _STEP_BYTES_MIN, self._file_bytes)
        self._mapped.allocate(path, have, want)
        self._allocated_end += want // QUEUE_ENTRY_BYTES - index

    def put(self, commit_log_offset: int, total_bytes: int, tags_code: int) -> None:
        """Appends an entry at `max_offset`, for which `reserve` allocated space."""
        queue_offset = self.max_offset
        position = queue_offset % self._entries_per_file * QUEUE_ENTRY_BYTES
        QUEUE_ENTRY.pack_into(self._file(queue_offset), position, commit_log_offset, total_bytes, tags_code)
        self.max_offset = queue_offset + 1
        self.last_commit_log_offset = commit_log_offset

    def put_holes(self, until: int, commit_log_offset: int) -> None:
        """Adds holes up to `until`, for lost messages; the next sound record is at `commit_log_offset`."""
        if self.max_offset == 0 and until > 0:
            self.continue_from(until)
        self.reserve(until - self.max_offset)
        while self.max_offset < until:
            self.put(commit_log_offset, HOLE_BYTES, 0)

    def continue_from(self, queue_offset: int) -> None:
        """Continues a queue without any entry at `queue_offset`. No file is made before the next `reserve`."""
        self._first_offset = self.max_offset = self.synced_offset = self._allocated_end = queue_offset
        self._is_file_missing = True

    def _fill_before(self, queue_offset: int) -> None:
        """Creates the file that holds `queue_offset`, with placeholders before that entry, as RocketMQ does."""
        first = queue_offset - queue_offset % self._entries_per_file
        self._allocated_end = first
        while self._allocated_end < queue_offset:
            self._allocate_step()
        if queue_offset > first:
            missing = queue_offset - first
            self._file(first)[: missing * QUEUE_ENTRY_BYTES] = QUEUE_ENTRY.pack(*_PLACEHOLDER) * missing
        self._first_offset = first
        self._is_file_missing = False

    # --- retention

    def drop_first_file(self, log_min_offset: int) -> Path | None:
        """Closes the first file and returns its path if all its entries point below the log, else None.

        Never the last file: it shows at which offset the queue goes on. The caller deletes the file.
        """
        first = self._first_offset
        following = first - first % self._entries_per_file + self._entries_per_file
        if following >= self.max_offset or self._entry(following - 1)[0] >= log_min_offset:
            return None
        path = self._path(first)
        self._mapped.close(path)
        self._first_offset = following
        return path

    # --- reading

    def entry(self, queue_offset: int) -> Entry | None:
        """Returns the entry at `queue_offset`, None outside the queue and for a hole."""
        if not self._first_offset <= queue_offset < self.max_offset:
            return None
        entry = self._entry(queue_offset)
        return entry if entry[1] != HOLE_BYTES else None

    def entries(self, queue_offset: int, count: int) -> bytes:
        """Returns the bytes of up to `count` entries from `queue_offset` on, holes too; fewer at the file's end."""
        index = queue_offset % self._entries_per_file
        count = min(count, self.max_offset - queue_offset, self._entries_per_file - index)
        start = index * QUEUE_ENTRY_BYTES
        return self._file(queue_offset)[start : start + count * QUEUE_ENTRY_BYTES]

    def min_offset(self, log_min_offset: int) -> int:
        """Returns the first offset whose record a log from `log_min_offset` on still has, `max_offset` if none."""
        if self._min_offset is None or self._min_offset[0] != log_min_offset:
            first = self.first_where(lambda entry: entry[0] >= log_min_offset and entry != _PLACEHOLDER)
            self._min_offset = log_min_offset, first
        return self._min_offset[1]

    def first_where(self, is_there: Callable[[Entry], bool]) -> int:
        """Returns the offset of the first entry for which `is_there` is true, `max_offset` if there is none.

        `is_there` must be true for all later entries too. A hole has the commit-log offset of the next sound record.
        """
        first = self._first_offset
        return first + self._partition(first, self.max_offset - first, lambda entry: not is_there(entry))


def _count_below(content: bytes, limit: int) -> int:
    """Returns how many complete entries of `content` are of records below `limit`; these come first."""
    low, high = 0, len(content) // QUEUE_ENTRY_BYTES
    while low < high:
        middle = (low + high) // 2
        offset, size, _ = QUEUE_ENTRY.unpack_from(content, middle * QUEUE_ENTRY_BYTES)
        if size != 0 and offset < limit:
            low = middle + 1
        else:
            high = middle
    return low
