"""A table of named settings in one of RocketMQ's JSON files, of which single entries change (Java `ConfigManager`).

    <file>.json            the whole table, with the version at which it was written; a copy beside it as .bak
    <file>.json.changes    the changes since, in the format of `config_changes.py`

RocketMQ writes the whole file for each change, which takes 8 ms with 10,000 groups. Here a change is one flushed line;
the file is written whole when nothing has changed for a while, when there are too many lines, and at start and stop, so
that a closed store has only RocketMQ's own file.

Invariants: a change survives a power cut once `save` has returned. Each change raises the table's version by one; a
line counts only if its version is above the file's, so a kill between writing the file and removing the lines does no
harm.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from broker.engine.config_changes import ChangeLog
from broker.engine.config_files import ConfigFileUnreadable, ConfigFileUnwritable, load_config_file
from broker.engine.store.files import Backup, FileLayer
from remoting.wire.bodies.topics import DataVersion

logger = logging.getLogger(__name__)

# With more bytes of lines than this the file is written whole: a start reads 8 MiB of them in a tenth of a second.
CHANGES_BYTES_MAX = 8 * 1024 * 1024


class Table(Protocol):
    """A config document of RocketMQ: a `DataVersion`, and a dict of entries in another field."""

    data_version: DataVersion


T = TypeVar("T", bound=Table)
E = TypeVar("E")


class _Change(msgspec.Struct, Generic[E]):
    """A change of the table: `put` has the new or changed entries, `gone` the names of removed ones."""

    version: DataVersion
    put: dict[str, E] = {}
    gone: list[str] = []


class ConfigTable(Generic[T, E]):
    """Keeps a config document in memory and on the disk.

    `table` is the document with all changes, `entries` its dict, which is changed in place.

    Callers: the owner of the table (`load`, `save`), the broker's loops (`fold_when_quiet`), its stop (`close`).
    """

    def __init__(
        self,
        path: Path,
        table: T,
        entries_field: str,
        entry_type: type[E],
        *,
        files: FileLayer | None = None,
        changes_bytes_max: int = CHANGES_BYTES_MAX,
    ) -> None:
        """`table` is the empty document, whose field `entries_field` is a dict of `entry_type`."""
        self._path = path
        self._entries_field = entries_field
        self._set_table(table)
        self._decoder = msgspec.json.Decoder(_Change[entry_type])  # type: ignore[valid-type]
        self._files = files or FileLayer()
        self._changes = ChangeLog(path.with_name(f"{path.name}.changes"), self._files)
        self._changes_bytes_max = changes_bytes_max
        # The version that the file holds; -1 where the next change must write the file whole.
        self._folded_counter = -1
        self._quiet_counter = -1
        self._is_folding = False
        self._is_open = False

    def _set_table(self, table: T) -> None:
        self.table = table
        self.entries: dict[str, E] = getattr(table, self._entries_field)

    def load(self) -> None:
        """Reads the file, and applies the changes since. Raises ConfigFileUnreadable, ConfigFileUnwritable."""
        self._set_table(load_config_file(self._path, type(self.table)) or self.table)
        try:
            lines = self._changes.read()
            changes = [self._decoder.decode(line) for line in lines]
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigFileUnreadable(f"{self._path}.changes: {error}; move it away to start without") from error
        for change in changes:
            self._apply_if_newer(change)
        if changes:
            self._write_whole()
        elif self._path.exists():
            self._folded_counter = self.table.data_version.counter
        self._is_open = True

    def _apply_if_newer(self, change: _Change[E]) -> None:
        before, counter = self.table.data_version.counter, change.version.counter
        if counter <= before:
            return
        if counter > before + 1:
            logger.error("%s: the changes %d to %d are missing", self._path, before + 1, counter - 1)
        self._apply(change)

    def _apply(self, change: _Change[E]) -> None:
        self.entries.update(change.put)
        for name in change.gone:
            self.entries.pop(name, None)
        self.table.data_version = change.version

    def save(self, put: Mapping[str, E], gone: Collection[str] = ()) -> None:
        """Writes the change to the disk, then applies it to the table. Raises ConfigFileUnwritable; then nothing has
        changed."""
        change = _Change(next_version(self.table.data_version), dict(put), list(gone))
        is_long = self._changes.byte_count > self._changes_bytes_max
        if (self._folded_counter < 0 or is_long) and not self._is_folding:
            self._save_whole(change)
            return
        try:
            self._changes.append(msgspec.json.encode(change))
        except OSError as error:
            # The line may be in the file nevertheless and must not count: the next change writes the table whole.
            self._folded_counter = -1
            raise ConfigFileUnwritable(self._path, error) from error
        self._apply(change)

    def _save_whole(self, change: _Change[E]) -> None:
        before = self.table
        table = copy(before)
        setattr(table, self._entries_field, dict(self.entries))
        self._set_table(table)
        self._apply(change)
        try:
            self._write_whole()
        except ConfigFileUnwritable:
            self._set_table(before)
            raise

    def _write_whole(self) -> None:
        """Writes the table to the file, and removes the change log. Raises ConfigFileUnwritable."""
        try:
            self._files.replace(self._path, msgspec.json.encode(self.table), Backup.COPY)
        except OSError as error:
            raise ConfigFileUnwritable(self._path, error) from error
        self._folded(self.table.data_version.counter)

    async def fold_when_quiet(self) -> None:
        """Writes the file whole, in a thread, if nothing has changed since the previous call. Raises OSError."""
        counter = self.table.data_version.counter
        was_quiet, self._quiet_counter = counter == self._quiet_counter, counter
        if not was_quiet or counter == self._folded_counter:
            return
        self._is_folding = True
        try:
            await asyncio.to_thread(self._files.replace, self._path, msgspec.json.encode(self.table), Backup.COPY)
        finally:
            self._is_folding = False
        self._folded(counter)

    def _folded(self, counter: int) -> None:
        """Removes the change log, if it has no change after `counter`: the file holds the table as of that version."""
        self._folded_counter = counter
        if self.table.data_version.counter == counter:
            try:
                self._changes.clear()
            except OSError as error:
                logger.warning(
                    "%s.changes cannot be removed; its changes are in the file by now: %s", self._path, error
                )

    def close(self) -> None:
        """Writes the file whole if it lacks changes; if that fails, they stay in the change log.

        A table that was never loaded, because it could not be read, stays as it is on the disk.
        """
        if self._is_open and self.table.data_version.counter != self._folded_counter:
            with suppress(ConfigFileUnwritable):
                self._write_whole()
        self._changes.close()
        self._is_open = False


def next_version(version: DataVersion) -> DataVersion:
    """Returns the version after a change: the counter raised by one, and the present time."""
    return DataVersion(
        counter=version.counter + 1, state_version=version.state_version, timestamp=time.time_ns() // 1_000_000
    )
