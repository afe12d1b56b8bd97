"""The file-system calls that the store's durability depends on; tests replace them by failing ones (`FileLayer`)."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from broker.engine.store.errors import StoreError

logger = logging.getLogger(__name__)

# The errors of a full disk, a quota, and a file-size limit.
NO_SPACE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# The errors of a process or system with too many open files: the disk works, and it passes.
NO_DESCRIPTOR_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE})
# Before anything was written, both kinds refuse the message and do not stop the store. Error number → remedy.
SHORTAGE_REMEDIES = dict.fromkeys(NO_SPACE_ERRNOS, "free space or move the store") | dict.fromkeys(
    NO_DESCRIPTOR_ERRNOS, "raise the limit of open files"
)

T = TypeVar("T")

_CHUNK_BYTES = 1024 * 1024
# macOS only; elsewhere the call fails and `flush_drive` uses fsync.
_F_FULLFSYNC = getattr(fcntl, "F_FULLFSYNC", 51)


def data_chunks(path: Path, position: int, end: int, overlap_bytes: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields (position, bytes) of the file's parts that hold data; holes of the sparse file are skipped unread.

    Each chunk repeats the last `overlap_bytes` of the one before, for searches. Raises OSError when the file cannot be
    opened or read.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        while position < end:
            try:
                position = os.lseek(descriptor, position, os.SEEK_DATA)
            except OSError:
                return
            data_end = min(os.lseek(descriptor, position, os.SEEK_HOLE), end)
            while position < data_end:
                chunk = os.pread(descriptor, min(_CHUNK_BYTES, data_end - position), position)
                yield position, chunk
                is_last = position + len(chunk) >= data_end or not chunk
                position = data_end if is_last else position + len(chunk) - overlap_bytes
    finally:
        os.close(descriptor)


def read_written(path: Path, byte_count: int) -> tuple[bytes, bool]:
    """Returns the file's first bytes, up to `byte_count` or its first hole, and whether data follows the hole.

    Holes of the sparse file are not read: that would cost memory and time. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if not os.fstat(descriptor).st_size:
            return b"", False
        hole = min(os.lseek(descriptor, 0, os.SEEK_HOLE), byte_count)
        content = os.pread(descriptor, hole, 0)
        try:
            return content, os.lseek(descriptor, hole, os.SEEK_DATA) < byte_count
        except OSError:
            return content, False
    finally:
        os.close(descriptor)


def read_range(path: Path, start: int, byte_count: int) -> bytes:
    """Returns `byte_count` bytes of the file from `start` on, fewer at its end. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.pread(descriptor, byte_count, start)
    finally:
        os.close(descriptor)


def backup_of(path: Path) -> Path:
    """Returns the path of the file's backup."""
    return path.with_name(path.name + ".bak")


def load_or_backup(path: Path, parse: Callable[[bytes], T]) -> T | None:
    """Reads and parses the file, or its backup if the file is missing or damaged; returns None when neither exists.

    `parse` raises ValueError for damaged content. Raises ValueError, which names the files, when none can be read.
    """
    problems: list[str] = []
    for candidate in (path, backup_of(path)):
        try:
            document = parse(candidate.read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            problems.append(f"{candidate} cannot be read ({error})")
            continue
        if problems:
            logger.error("%s; taking the backup", problems[0])
        return document
    if problems:
        raise ValueError("; ".join(problems))
    return None


class Backup(Enum):
    """Selects the content of the `.bak` file beside a replaced file."""

    NONE = "none"
    PREVIOUS = "the content before, as RocketMQ does"
    COPY = "the same content, for the case that the file itself is damaged"


def set_length(descriptor: int, start: int, byte_count: int) -> None:
    """Extends the file to the end of the range, on systems without `posix_fallocate` (macOS).

    It reserves no space: a full disk is noticed when the range is written.
    """
    os.truncate(descriptor, max(os.fstat(descriptor).st_size, start + byte_count))


def flush_drive(descriptor: int) -> None:
    """Flushes the file, and the drive's own cache where there is a call for it (macOS, whose fsync does not do it)."""
    try:
        fcntl.fcntl(descriptor, _F_FULLFSYNC)
    except OSError:
        os.fsync(descriptor)


class FileLayer:
    """The file-system calls of the store. Each method raises OSError, as the call of the same name does."""

    pwrite = staticmethod(os.pwrite)
    allocate = staticmethod(getattr(os, "posix_fallocate", set_length))
    fdatasync = staticmethod(getattr(os, "fdatasync", flush_drive))
    # For folders: fdatasync may leave a new file name in the journal only.
    fsync = staticmethod(os.fsync if hasattr(os, "fdatasync") else flush_drive)

    def identity(self, descriptor: int) -> int:
        """Returns the file's inode number, which a copy of the file does not have."""
        return os.fstat(descriptor).st_ino

    def remove(self, path: Path) -> None:
        """Deletes the file if it exists."""
        path.unlink(missing_ok=True)

    def sync_path(self, path: Path) -> None:
        """Flushes a file's content, or a folder's list of names; does nothing if the path no longer exists."""
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            if path.is_dir():
                self.fsync(descriptor)
            else:
                self.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def read_json(self, path: Path) -> Any:
        """Reads a file of `replace_json`; returns None when neither the file nor its backup exists.

        Raises StoreError when neither can be read.
        """
        try:
            return load_or_backup(path, msgspec.json.decode)
        except ValueError as error:
            raise StoreError(f"{error}; restore it from a copy of the store") from error

    def replace_json(self, path: Path, value: Any) -> None:
        """Replaces the file by `value` as JSON, and its backup too: the old content must never be read again."""
        self.replace(path, msgspec.json.format(msgspec.json.encode(value), indent=1), Backup.COPY)

    def replace(self, path: Path, content: bytes, backup: Backup, *, flushes: bool = True) -> None:
        """Replaces the file's content atomically: after a crash it has its old or its new content. Raises OSError.

        Once it returns, the new content survives a power cut, unless `flushes` is false.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._write_draft(path, content, flushes=flushes)
        if backup is Backup.PREVIOUS and path.exists():
            backup_of(path).unlink(missing_ok=True)
            os.link(path, backup_of(path))
        draft.replace(path)
        if backup is Backup.COPY:
            self._write_draft(backup_of(path), content, flushes=flushes).replace(backup_of(path))
        if flushes:
            self.sync_path(path.parent)

    def _write_draft(self, path: Path, content: bytes, *, flushes: bool) -> Path:
        draft = path.with_name(path.name + ".tmp")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            if self.pwrite(descriptor, content, 0) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(draft))
            if flushes:
                self.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        return draft
