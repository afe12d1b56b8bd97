"""The store's folder: locks it for one process, checks the layout's version, tells whether it was closed in order.

lock            held with flock while the store is open; contains the owner's process id
store.json      the version of the layout, and the sizes that the store was created with
abort           exists while the store is open (RocketMQ's name); found at a start, it means a kill or a power cut
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from broker.engine.store.errors import StoreError, StoreLocked, StoreVersionError
from broker.engine.store.files import NO_SPACE_ERRNOS, FileLayer

STORE_FORMAT = 1
_SEGMENT_BYTES_MIN = 4096
_SEGMENT_BYTES_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class StoreSizes:
    """The sizes of a store's files, fixed when it is created. A queue file has `queue_file_entries` of 20 bytes."""

    segment_bytes: int
    queue_file_entries: int


class StoreFolder:
    """The folder of a store. `open` locks it, `release` unlocks it."""

    def __init__(self, path: Path, files: FileLayer) -> None:
        self.path = path
        self._files = files
        self._lock = -1

    def open(self, wanted: StoreSizes) -> StoreSizes:
        """Locks the folder, creating it if need be. Returns the sizes of the store in it; of a new store, `wanted`.

        Raises StoreLocked, StoreVersionError, or StoreError when the folder cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(
                f"the store folder {self.path} cannot be written ({error.strerror}); choose another with --store"
            ) from error
        try:
            self._take_lock()
            return self._read_sizes() or self._record(wanted)
        except BaseException:
            self.release()
            raise

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise StoreLocked(
                f"the store {self.path} is open in another process (pid {owner}); stop that broker, or choose another "
                "folder with --store"
            ) from error
        # The process id is only information, and on a full disk the store must open nevertheless.
        with suppress(OSError):
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _read_sizes(self) -> StoreSizes | None:
        meta = self.path / "store.json"
        try:
            recorded = self._files.read_json(meta)
        except StoreError as error:
            raise StoreVersionError(str(error)) from error
        if recorded is None:
            return None
        try:
            found = recorded["format"]
            if found != STORE_FORMAT:
                raise StoreVersionError(
                    f"{self.path} is a store of version {found}; this broker reads version {STORE_FORMAT}: use the "
                    "release that made it, or another folder"
                )
            return StoreSizes(int(recorded["segment_bytes"]), int(recorded["queue_file_entries"]))
        except (ValueError, KeyError, TypeError) as error:
            raise StoreVersionError(f"{meta} is not a store's description ({error!r}); restore it") from error

    def _record(self, wanted: StoreSizes) -> StoreSizes:
        if any((self.path / "commitlog").glob("[0-9]*")):
            raise StoreVersionError(
                f"{self.path} has a commit log but no store.json, so it is no store of ours; choose another folder "
                "with --store"
            )
        if not _SEGMENT_BYTES_MIN <= wanted.segment_bytes <= _SEGMENT_BYTES_MAX:
            raise StoreError(
                f"segment size {wanted.segment_bytes} is not within {_SEGMENT_BYTES_MIN} to {_SEGMENT_BYTES_MAX} bytes"
            )
        description = {
            "format": STORE_FORMAT,
            "segment_bytes": wanted.segment_bytes,
            "queue_file_entries": wanted.queue_file_entries,
        }
        try:
            self._files.replace_json(self.path / "store.json", description)
        except OSError as error:
            reason = "no space" if error.errno in NO_SPACE_ERRNOS else error.strerror
            raise StoreError(f"the store folder {self.path} cannot be written ({reason})") from error
        return wanted

    @property
    def was_aborted(self) -> bool:
        """Tells whether the last process that had the store open did not close it."""
        return (self.path / "abort").exists()

    def mark_open(self) -> None:
        """Creates `abort`. Raises OSError."""
        (self.path / "abort").write_text(f"{os.getpid()}\n")
        self._files.sync_path(self.path)

    def mark_closed(self) -> None:
        """Deletes `abort`, after an orderly close. Raises OSError."""
        (self.path / "abort").unlink(missing_ok=True)
        self._files.sync_path(self.path)

    def release(self) -> None:
        """Unlocks the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
