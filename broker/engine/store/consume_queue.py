"""One consume queue: the positions of a queue's messages in the commit log, 20 bytes each (RocketMQ's `ConsumeQueue`).

    consumequeue/<topic>/<queue id>/<20-digit byte offset>      files of a fixed number of entries, 300,000 by default

Derived from the log and rebuilt from it, so entries are stored through a mapping, without a system call. A file has its
full size at once but takes space in small steps, ahead of the entries: a full disk refuses the step, never an entry.
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

# Entries of a file, and the CRC32 of their bytes.
Sum = tuple[int, int]

# A file takes space in steps that double: a page for a queue of a few messages, few calls for a busy one.
_STEP_BYTES_MIN = 4096
_STEP_BYTES_MAX = 256 * 1024
# What RocketMQ puts before the first entry of a queue whose older part is gone.
_PLACEHOLDER: Entry = (0, HOLE_BYTES, 0)


class ConsumeQueue:
    """`max_offset` is the number of the next entry, `synced_offset` what it was when the files were last flushed.

    `magic`, `topic_part` and `topic_crc` are what records and keys of this topic need, made once.
    """

    def __init__(self, topic: str, queue_id: int, folder: Path, entries_per_file: int, mapped: MappedFiles) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.max_offset = 0
        self.synced_offset = 0
        # Of the last entry (a hole's is that of the record behind it): below the log's beginning, none is readable.
        self.last_commit_log_offset = -1
        self.magic, self.topic_part = encode_topic(topic)
        self.topic_crc = hash_topic(topic)
        self._folder = folder
        self._entries_per_file = entries_per_file
        self._file_bytes = entries_per_file * QUEUE_ENTRY_BYTES
        self._mapped = mapped
        # The queue's first entry that is on the disk, and one past the last that has space there.
        self._first_offset = 0
        self._room_end = 0
        # Entries before the first are missing in its file, which is to be made when there is something to put.
        self._is_unfounded = False
        self._min_offset: tuple[int, int] | None = None  # (log's min offset, ours for it)
        self._sums: dict[int, Sum] = {}
        # The file that was used last, and the number of its first entry.
        self._file_first = -1
        self._file_map: mmap.mmap | None = None

    # --- opening

    def load(self, log_end: int | None, sums: Mapping[int, Sum] = MappingProxyType({})) -> None:
        """Finds the entries on the disk; those of records from `log_end` on are zeroed (None: all are trusted).

        `sums`: by the number of a file's first entry, what was written down of it. Raises IndexesStale when a file is
        missing between others, or is not what was written down.
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
            self.max_offset = self._room_end = self.synced_offset = first + count
            if count:
                self.last_commit_log_offset = QUEUE_ENTRY.unpack_from(content, (count - 1) * QUEUE_ENTRY_BYTES)[0]
            entries_end = count * QUEUE_ENTRY_BYTES
            if log_end is not None and (has_more or content.count(0, entries_end) != len(content) - entries_end):
                self._wipe(first, count)
            if count or start == starts[0]:
                break
            self._mapped.close(self._path(first))
            self._path(first).unlink()
        for first in range(self._first_offset, self.max_offset - self._entries_per_file, self._entries_per_file):
            if first in sums:
                content, _ = read_written(self._path(first), self._file_bytes)
                self._check_sum(first, content, self._entries_per_file, sums)

    def _check_sum(self, first: int, content: bytes, count: int, sums: Mapping[int, Sum]) -> None:
        """`count`: how many entries of the file count. Raises IndexesStale."""
        known = sums.get(first)
        if known is None:
            return
        summed_count, crc = known
        if crc32(content[: summed_count * QUEUE_ENTRY_BYTES]) != crc:
            raise IndexesStale(f"{self._path(first)} is not what was written: a bit of it changed")
        if summed_count <= count:
            self._sums[first] = known

    def sum_up(self) -> dict[int, Sum]:
        """By the number of each file's first entry: how many entries are in it, and their CRC32. Only what came since
        the last time is read."""
        if self._is_unfounded:
            return {}
        sums: dict[int, Sum] = {}
        for first in range(self._first_offset, self.max_offset, self._entries_per_file):
            count = min(self.max_offset - first, self._entries_per_file)
            summed_count, crc = self._sums.get(first, (0, 0))
            if summed_count < count:
                # Not through a mapping: only so many files are mapped, and there may be more queues.
                start = summed_count * QUEUE_ENTRY_BYTES
                crc = crc32(read_range(self._path(first), start, count * QUEUE_ENTRY_BYTES - start), crc)
            sums[first] = count, crc
        self._sums = sums
        return sums

    def _wipe(self, first: int, count: int) -> None:
        """Zeros behind the first `count` entries of a file, so that old bytes never pass for entries."""
        mapping = self._file(first)
        for position, chunk in data_chunks(self._path(first), count * QUEUE_ENTRY_BYTES, self._file_bytes):
            if chunk.count(0) != len(chunk):
                mapping[position : position + len(chunk)] = bytes(len(chunk))
                self.synced_offset = max(first, self.max_offset - 1)

    def _partition(self, first: int, count: int, is_before: Callable[[Entry], bool]) -> int:
        """How many of `count` entries from `first` on satisfy `is_before`, which holds for a first part of them."""
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
        """The mapped file that holds the entry."""
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
        """Lets go of the files, so that they can be deleted."""
        for path in self._folder.glob("[0-9]*"):
            self._mapped.close(path)
        self._file_map = None

    def changed_files(self) -> list[Path]:
        """The files, and the folders that name them, that changed since the last call; they count as flushed now."""
        if self.synced_offset == self.max_offset:
            return []
        first = self.synced_offset - self.synced_offset % self._entries_per_file
        self.synced_offset = self.max_offset
        paths = [self._path(start) for start in range(first, self.max_offset, self._entries_per_file)]
        return [*paths, self._folder, self._folder.parent, self._folder.parent.parent]

    # --- writing

    def reserve(self, count: int) -> None:
        """Takes space for `count` more entries, and opens their file: `put` must not need a descriptor.

        Raises OSError; nothing is half done that matters.
        """
        if self._is_unfounded and count:
            self._fill_before(self.max_offset)
        while self._room_end < self.max_offset + count:
            self._take_step()
        if count:
            self._file(self.max_offset)

    def _take_step(self) -> None:
        index = self._room_end % self._entries_per_file
        path = self._path(self._room_end)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._mapped.open(path, self._file_bytes)
        have = index * QUEUE_ENTRY_BYTES
        step = min(max(_STEP_BYTES_MIN, have), _STEP_BYTES_MAX)
        want = have + QUEUE_ENTRY_BYTES + step
        want = min(want - want % _STEP_BYTES_MIN, self._file_bytes)
        self._mapped.allocate(path, have, want)
        self._room_end += want // QUEUE_ENTRY_BYTES - index

    def put(self, commit_log_offset: int, total_bytes: int, tags_code: int) -> None:
        """Appends the entry of the message at `max_offset`, for which `reserve` took space."""
        queue_offset = self.max_offset
        position = queue_offset % self._entries_per_file * QUEUE_ENTRY_BYTES
        QUEUE_ENTRY.pack_into(self._file(queue_offset), position, commit_log_offset, total_bytes, tags_code)
        self.max_offset = queue_offset + 1
        self.last_commit_log_offset = commit_log_offset

    def put_holes(self, until: int, commit_log_offset: int) -> None:
        """Marks the entries from `max_offset` to `until` as lost; the next sound record is at `commit_log_offset`."""
        if self.max_offset == 0 and until > 0:
            self.go_on_at(until)
        self.reserve(until - self.max_offset)
        while self.max_offset < until:
            self.put(commit_log_offset, HOLE_BYTES, 0)

    def go_on_at(self, queue_offset: int) -> None:
        """The next message of this queue, which has no entry left, gets `queue_offset`. Costs nothing until then."""
        self._first_offset = self.max_offset = self.synced_offset = self._room_end = queue_offset
        self._is_unfounded = True

    def _fill_before(self, queue_offset: int) -> None:
        """A queue whose older part is gone starts with the file that holds `queue_offset`, as RocketMQ's do."""
        first = queue_offset - queue_offset % self._entries_per_file
        self._room_end = first
        while self._room_end < queue_offset:
            self._take_step()
        if queue_offset > first:
            missing = queue_offset - first
            self._file(first)[: missing * QUEUE_ENTRY_BYTES] = QUEUE_ENTRY.pack(*_PLACEHOLDER) * missing
        self._first_offset = first
        self._is_unfounded = False

    # --- retention

    def drop_first_file(self, log_min_offset: int) -> Path | None:
        """Lets go of the first file when all its entries point below the log, None when there is none such.

        The last file stays: it says where the queue goes on. The caller removes the file.
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
        """The entry, or None outside the queue and for a hole."""
        if not self._first_offset <= queue_offset < self.max_offset:
            return None
        entry = self._entry(queue_offset)
        return entry if entry[1] != HOLE_BYTES else None

    def entries(self, queue_offset: int, count: int) -> bytes:
        """Up to `count` entries from `queue_offset` on as they lie in the file, holes too; ends with the file."""
        index = queue_offset % self._entries_per_file
        count = min(count, self.max_offset - queue_offset, self._entries_per_file - index)
        start = index * QUEUE_ENTRY_BYTES
        return self._file(queue_offset)[start : start + count * QUEUE_ENTRY_BYTES]

    def min_offset(self, log_min_offset: int) -> int:
        """The first entry whose record is still in a log that starts at `log_min_offset`; `max_offset` if none is."""
        if self._min_offset is None or self._min_offset[0] != log_min_offset:
            first = self.first_where(lambda entry: entry[0] >= log_min_offset and entry != _PLACEHOLDER)
            self._min_offset = log_min_offset, first
        return self._min_offset[1]

    def first_where(self, is_there: Callable[[Entry], bool]) -> int:
        """The first entry for which `is_there` holds, `max_offset` if none; it must hold for all behind it too.

        A hole takes part with the offset of the next sound record.
        """
        first = self._first_offset
        return first + self._partition(first, self.max_offset - first, lambda entry: not is_there(entry))


def _count_below(content: bytes, limit: int) -> int:
    """How many whole entries of `content` are of records below `limit`; they come first."""
    low, high = 0, len(content) // QUEUE_ENTRY_BYTES
    while low < high:
        middle = (low + high) // 2
        offset, size, _ = QUEUE_ENTRY.unpack_from(content, middle * QUEUE_ENTRY_BYTES)
        if size != 0 and offset < limit:
            low = middle + 1
        else:
            high = middle
    return low
