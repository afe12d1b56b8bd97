"""The key index: finds the commit-log offsets of messages by key (RocketMQ's `IndexService` and `IndexFile`).

    keyindex/<20-digit commit-log offset of the first entry>
    | 64 header | 4 × slots: number of the newest entry | 16 × entries: 4 key hash, 8 commit-log offset, 4 previous |

Entries are numbered from 1; those of one slot form a chain, newest first. The hash is the CRC32 of `topic#key`, which
zlib computes fast; Java's hash would collide as often and be slower here. A hash is no proof, so a lookup compares the
record itself. RocketMQ's files have 400 MB each; ours are allocated in steps up to 4.5 MB, then the next file begins.

Derived from the log: entries are append-only and their number is in the checkpoint, so after a kill the slots of the
last file are rebuilt from the entries that the checkpoint covers. Event loop only.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from broker.engine.store.errors import IndexesStale, RecordRefused
from broker.engine.store.files import data_chunks
from broker.engine.store.layout import file_name, hash_topic
from broker.engine.store.mapped_files import MappedFiles
from broker.engine.store.values import index_keys

SLOT_COUNT = 131_072
ENTRIES_PER_FILE = 262_144

# magic, first commit-log offset, 8 unused, first and last store timestamp, entries (as of the last checkpoint).
_HEADER = struct.Struct(">8sqqqqi")
_HEADER_BYTES = 64
_MAGIC = b"mqakey01"
_SLOT = struct.Struct(">I")
_ENTRY = struct.Struct(">IqI")
_STEP_BYTES = 64 * 1024


class KeyFile:
    """One file of the key index, with `count` entries (RocketMQ's `IndexFile`)."""

    def __init__(self, path: Path, slot_count: int, capacity: int, mapped: MappedFiles) -> None:
        self.path = path
        self.count = 0
        self.first_timestamp_ms = 0
        self.last_timestamp_ms = 0
        self._slot_count = slot_count
        self._entries_at = _HEADER_BYTES + slot_count * _SLOT.size
        self._capacity = capacity
        self._file_bytes = self._entries_at + capacity * _ENTRY.size
        self._mapped = mapped
        self._allocated_count = 0
        self._map: mmap.mmap | None = None

    @property
    def _mapping(self) -> mmap.mmap:
        if self._map is None or self._map.closed:
            self._map = self._mapped.open(self.path, self._file_bytes)
        return self._map

    @property
    def left(self) -> int:
        """Returns how many more entries fit into the file."""
        return self._capacity - self.count

    def reserve(self, count: int) -> None:
        """Allocates space for `count` more entries and opens the file: `put` must not need a descriptor.

        Raises OSError.
        """
        self._map = self._mapped.open(self.path, self._file_bytes)
        if self.count + count > self._allocated_count:
            room = min(self.count + count + _STEP_BYTES // _ENTRY.size, self._capacity)
            start = self._entries_at + self.count * _ENTRY.size if self.count else 0
            self._mapped.allocate(self.path, start, self._entries_at + room * _ENTRY.size)
            self._allocated_count = room

    def put(self, key_hashes: list[int], commit_log_offset: int, timestamp_ms: int) -> None:
        """Adds an entry for each key of one message; `reserve` allocated their space."""
        mapping, number = self._mapping, self.count
        if not number:
            self.first_timestamp_ms = timestamp_ms
        for key_hash in key_hashes:
            slot_at = _HEADER_BYTES + key_hash % self._slot_count * _SLOT.size
            (previous,) = _SLOT.unpack_from(mapping, slot_at)
            _ENTRY.pack_into(mapping, self._entries_at + number * _ENTRY.size, key_hash, commit_log_offset, previous)
            number += 1
            _SLOT.pack_into(mapping, slot_at, number)
        self.count = number
        self.last_timestamp_ms = timestamp_ms

    def find(self, key_hash: int) -> Iterator[int]:
        """Yields the commit-log offsets of the entries with this hash, newest first."""
        mapping = self._mapping
        (number,) = _SLOT.unpack_from(mapping, _HEADER_BYTES + key_hash % self._slot_count * _SLOT.size)
        while 0 < number <= self.count:
            found, offset, previous = _ENTRY.unpack_from(mapping, self._entries_at + (number - 1) * _ENTRY.size)
            if found == key_hash:
                yield offset
            # A chain leads to smaller numbers only; in a damaged file it must not become an endless loop.
            number = previous if previous < number else 0

    @property
    def last_offset(self) -> int:
        """Returns the commit-log offset of the newest entry; there must be one."""
        offset: int = _ENTRY.unpack_from(self._mapping, self._entries_at + (self.count - 1) * _ENTRY.size)[1]
        return offset

    def write_header(self) -> None:
        """Stores the count and times in the file's header."""
        mapping = self._mapping
        start = int(self.path.name)
        fields = (_MAGIC, start, 0, self.first_timestamp_ms, self.last_timestamp_ms, self.count)
        _HEADER.pack_into(mapping, 0, *fields)

    def read_header(self) -> None:
        """Reads the count and times from the file's header. Raises IndexesStale when it is damaged or missing."""
        mapping = self._mapping
        magic, start, _, first_ms, last_ms, count = _HEADER.unpack_from(mapping, 0)
        if magic != _MAGIC or start != int(self.path.name) or not 0 < count <= self._capacity:
            raise IndexesStale(f"{self.path} has no sound header")
        self.count, self.first_timestamp_ms, self.last_timestamp_ms = count, first_ms, last_ms

    def cut(self, count: int) -> None:
        """Truncates the file to its first `count` entries: rebuilds the slots and zeroes the rest."""
        self.count = count
        mapping = self._mapping
        entries_end = self._entries_at + count * _ENTRY.size
        for position, chunk in data_chunks(self.path, entries_end, self._file_bytes):
            mapping[position : position + len(chunk)] = bytes(len(chunk))
        slots = [0] * self._slot_count
        fresh = bytearray()
        with memoryview(mapping) as view:
            for number, (key_hash, offset, _) in enumerate(
                _ENTRY.iter_unpack(view[self._entries_at : entries_end]), start=1
            ):
                slot = key_hash % self._slot_count
                fresh += _ENTRY.pack(key_hash, offset, slots[slot])
                slots[slot] = number
        mapping[self._entries_at : entries_end] = bytes(fresh)
        mapping[_HEADER_BYTES : self._entries_at] = struct.pack(f">{self._slot_count}I", *slots)


class KeyIndex:
    """The key index, all files of it (RocketMQ's `IndexService`)."""

    def __init__(
        self,
        folder: Path,
        mapped: MappedFiles,
        slot_count: int = SLOT_COUNT,
        entries_per_file: int = ENTRIES_PER_FILE,
    ) -> None:
        self._folder = folder
        self._mapped = mapped
        self._slot_count = slot_count
        self._entries_per_file = entries_per_file
        self._files: list[KeyFile] = []
        self._changed: list[KeyFile] = []
        folder.mkdir(exist_ok=True)

    @property
    def position(self) -> tuple[int, int]:
        """Returns (start of the last file with entries, their number), for the checkpoint; (0, 0) without entries."""
        for file in reversed(self._files):
            if file.count:
                return int(file.path.name), file.count
        return 0, 0

    @property
    def last(self) -> tuple[int, int]:
        """Returns (commit-log offset, store timestamp in ms) of the newest entry; (0, 0) when there is none."""
        for file in reversed(self._files):
            if file.count:
                return file.last_offset, file.last_timestamp_ms
        return 0, 0

    def load(self, position: tuple[int, int], *, is_clean: bool) -> None:
        """Reads the index up to `position` and deletes the entries and files behind it.

        Raises IndexesStale when entries before `position` are missing.
        """
        start, count = position
        names = sorted(path.name for path in self._folder.iterdir() if path.name.isdigit())
        for name in names:
            file = self._file(int(name))
            if int(name) > start or count == 0:
                self._mapped.close(file.path)
                file.path.unlink()
                continue
            file.read_header()
            self._files.append(file)
        found_start, found_count = self.position
        if found_start != start or found_count < count:
            raise IndexesStale(f"the key index lacks entries of file {start}")
        if count and not (is_clean and self._files[-1].count == count):
            self._files[-1].cut(count)
            self._changed.append(self._files[-1])

    def clear(self) -> None:
        """Deletes all files of the index."""
        self._files.clear()
        self._changed.clear()
        for path in self._folder.iterdir():
            self._mapped.close(path)
            path.unlink()

    def _file(self, start: int) -> KeyFile:
        return KeyFile(self._folder / file_name(start), self._slot_count, self._entries_per_file, self._mapped)

    def reserve(self, count: int, commit_log_offset: int) -> None:
        """Allocates space for `count` entries of messages from `commit_log_offset` on, in a new file if need be.

        Raises OSError, and RecordRefused when `count` is more than a file holds.
        """
        if count > self._entries_per_file:
            raise RecordRefused(f"{count} keys in one batch; at most {self._entries_per_file} can be indexed together")
        if not self._files or self._files[-1].left < count:
            if self._files:
                self._files[-1].write_header()
            fresh = self._file(commit_log_offset)
            fresh.reserve(count)
            self._files.append(fresh)
        else:
            self._files[-1].reserve(count)

    def put(self, topic_crc: int, keys: list[str], commit_log_offset: int, timestamp_ms: int) -> None:
        """Indexes the keys of one message; `topic_crc` is `hash_topic` of its topic."""
        file = self._files[-1]
        if not self._changed or self._changed[-1] is not file:
            self._changed.append(file)
        hashes = [crc32(key.encode("utf-8", "replace"), topic_crc) for key in keys]
        file.put(hashes, commit_log_offset, timestamp_ms)

    def find(self, topic: str, key: str, begin_ms: int, end_ms: int) -> Iterator[int]:
        """Yields commit-log offsets of messages that may have the key, newest first.

        The caller must check key and time in the record: hashes collide, and times are known per file only.
        """
        key_hash = crc32(key.encode("utf-8", "replace"), hash_topic(topic))
        for file in reversed(self._files):
            if file.first_timestamp_ms <= end_ms and file.last_timestamp_ms >= begin_ms:
                yield from file.find(key_hash)

    def drop_first_file(self, log_min_offset: int) -> Path | None:
        """Closes the first file and returns its path if all its entries point below the log, else None.

        The caller deletes the file.
        """
        if len(self._files) < 2 or not self._files[1].count or int(self._files[1].path.name) > log_min_offset:
            return None
        file = self._files.pop(0)
        if file in self._changed:
            self._changed.remove(file)
        self._mapped.close(file.path)
        return file.path

    def changed_files(self) -> list[Path]:
        """Returns the files that changed since the last call, with their folders; they count as flushed from now on."""
        changed, self._changed = self._changed, []
        for file in changed:
            file.write_header()
        return [file.path for file in changed] + ([self._folder, self._folder.parent] if changed else [])


def message_keys(properties_text: str) -> list[str]:
    """Returns the keys that a message is indexed by, from its properties as they are stored."""
    return index_keys(_value(properties_text, "UNIQ_KEY\x01"), _value(properties_text, "KEYS\x01"))


def _value(text: str, name: str) -> str | None:
    """Returns the value of one property without decoding the others; `name` includes the separator 0x01."""
    at = text.find(name)
    while at > 0 and text[at - 1] != "\x02":
        at = text.find(name, at + 1)
    if at < 0:
        return None
    start = at + len(name)
    end = text.find("\x02", start)
    return text[start:] if end < 0 else text[start:end]
