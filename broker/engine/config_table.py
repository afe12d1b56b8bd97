"""A table of named settings in one of RocketMQ's JSON files, of which single entries change (Java `ConfigManager`).

    <file>.json            the whole table, with the version at which it was written; a copy beside it as .bak
    <file>.json.changes    the changes since, in the format of `config_changes.py`

RocketMQ writes the whole file for each change, which takes 8 ms with 10,000 groups. Here a change is one flushed line;
the file is written whole when nothing has changed for a while, when there are too many lines, and at start and stop, so
that a closed store has only RocketMQ's own file.

`save` flushes on the event loop and returns when the change counts. What is submitted is flushed in a thread, with one
flush for all changes that came during the one before (group commit), and counts after it.

Invariants: a change is in the table only once it would survive a power cut, and changes come into the table in the
order of their lines. Each raises the table's version by one; a line counts only if its version is above the file's, so
a kill between writing the file and removing the lines does no harm.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from broker.engine.config_changes import ChangeLog
from broker.engine.config_files import ConfigFileUnreadable, ConfigFileUnwritable, load_config_file
from broker.engine.event_loop import PeriodicTask
from broker.engine.store.files import Backup, FileLayer
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.topics import DataVersion
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError

logger = logging.getLogger(__name__)

# With more bytes of lines than this the file is written whole: a start reads 8 MiB of them in a tenth of a second.
CHANGES_BYTES_MAX = 8 * 1024 * 1024
# Submitted changes that wait for the disk, each with its request. As many as sends may wait.
UNFLUSHED_MAX = 10_000


class Table(Protocol):
    """A config document of RocketMQ: a `DataVersion`, and a dict of entries in another field."""

    data_version: DataVersion


T = TypeVar("T", bound=Table)
E = TypeVar("E")

# Called with None once a submitted change is on the disk and in the table, or with the reason why it never will be.
Saved = Callable[[ConfigFileUnwritable | None], None]


class _Change(msgspec.Struct, Generic[E]):
    """A change of the table: `put` has the new or changed entries, `gone` the names of removed ones."""

    version: DataVersion
    put: dict[str, E] = {}
    gone: list[str] = []


class _Unflushed(NamedTuple, Generic[E]):
    """A change whose line begins at `position` of the change log and is not flushed yet."""

    change: _Change[E]
    position: int
    saved: Saved


class ConfigTable(Generic[T, E]):
    """Keeps a config document in memory and on the disk.

    `table` is the document with all changes, `entries` its dict, which is changed in place.

    Callers: the owner of the table (`load`, `save`, `submit`), the broker's start and stop. Event loop only.
    """

    def __init__(
        self,
        path: Path,
        table: T,
        entries_field: str,
        entry_type: type[E],
        *,
        on_changed: Callable[[str], None],
        fold_interval_s: float,
        complaints: ComplaintLog,
        files: FileLayer | None = None,
        changes_bytes_max: int = CHANGES_BYTES_MAX,
        unflushed_max: int = UNFLUSHED_MAX,
    ) -> None:
        """`table` is the empty document, whose field `entries_field` is a dict of `entry_type`. `on_changed(name)` is
        called for each entry that was put or removed after `load`. `complaints` gets a line when the disk takes
        nothing."""
        self._path = path
        self._complaints = complaints
        self._entries_field = entries_field
        self._set_table(table)
        self._decoder = msgspec.json.Decoder(_Change[entry_type])  # type: ignore[valid-type]
        self._on_changed = on_changed
        self._files = files or FileLayer()
        self._changes = ChangeLog(path.with_name(f"{path.name}.changes"), self._files)
        self._changes_bytes_max = changes_bytes_max
        self._unflushed_max = unflushed_max
        # Of the last change that was written, flushed or not.
        self._last_version = self.table.data_version
        self._unflushed: deque[_Unflushed[E]] = deque()
        self._flushing: asyncio.Task[None] | None = None
        # The version that the file holds; -1 where the next change must write the file whole.
        self._folded_counter = -1
        self._quiet_counter = -1
        self._is_folding = False
        self._is_open = False
        self._folding = PeriodicTask(f"write {path.name} whole", fold_interval_s, self.fold_when_quiet)

    def _set_table(self, table: T) -> None:
        self.table = table
        self.entries: dict[str, E] = getattr(table, self._entries_field)

    # --- start and stop

    def load(self, defaults: Mapping[str, E], unwanted: Collection[str] = ()) -> None:
        """Reads the file, applies the changes since, adds what is missing of `defaults`, and removes `unwanted`.

        Raises ConfigFileUnreadable, ConfigFileUnwritable.
        """
        self._set_table(load_config_file(self._path, type(self.table)) or self.table)
        try:
            lines = self._changes.read()
            changes = [self._decoder.decode(line) for line in lines]
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigFileUnreadable(f"{self._path}.changes: {error}; move it away to start without") from error
        for change in changes:
            self._apply_if_newer(change)
        self._last_version = self.table.data_version
        if changes:
            self._write_whole()
        elif self._path.exists():
            self._folded_counter = self._last_version.counter
        missing = {name: entry for name, entry in defaults.items() if name not in self.entries}
        gone = [name for name in unwanted if name in self.entries]
        if missing or gone:
            self.save(missing, gone)
        self._is_open = True

    def start(self) -> None:
        """Writes the file whole now and then, once it has been quiet."""
        self._folding.start()

    async def stop(self) -> None:
        """Returns when what was submitted is flushed and the file is written whole."""
        await self._folding.stop()
        if self._flushing is not None:
            await self._flushing
        self.close()

    def close(self) -> None:
        """Writes the file whole if it lacks changes; if that fails, they stay in the change log.

        A table that was never loaded, because it could not be read, stays as it is on the disk.
        """
        self.flush()
        if self._is_open and self.table.data_version.counter != self._folded_counter:
            with suppress(ConfigFileUnwritable):
                self._write_whole()
        self._changes.close()
        self._is_open = False

    # --- changes

    def save(self, put: Mapping[str, E], gone: Collection[str] = ()) -> None:
        """Writes the change to the disk, then applies it to the table. Raises ConfigFileUnwritable; then nothing has
        changed."""
        results: list[ConfigFileUnwritable | None] = []
        self._write(put, gone, results.append)
        self.flush()
        if results[0] is not None:
            raise results[0]

    def submit(self, put: Mapping[str, E], gone: Collection[str], saved: Saved) -> None:
        """Calls `saved` once the change is on the disk and in the table, or cannot be written; maybe at once.

        Raises MessageError (SYSTEM_BUSY) while too many changes wait for the disk.
        """
        if len(self._unflushed) >= self._unflushed_max:
            raise MessageError(
                f"{self._unflushed_max} changes of {self._path.name} wait for the disk: try again later",
                ResponseCode.SYSTEM_BUSY,
            )
        self._write(put, gone, saved)
        if self._unflushed and self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_submitted(), name=f"flush {self._path.name}.changes")

    def flush(self) -> None:
        """Flushes what was submitted at once, without the thread."""
        if not self._unflushed:
            return
        try:
            self._changes.flush()
        except OSError as error:
            self._refuse_unflushed(error)
        else:
            self._take_up_to(self._last_version.counter)

    async def _flush_submitted(self) -> None:
        try:
            while self._unflushed:
                counter = self._last_version.counter
                try:
                    await self._changes.flush_in_thread()
                except OSError as error:
                    self._refuse_unflushed(error)
                else:
                    self._take_up_to(counter)
        finally:
            self._flushing = None

    def _write(self, put: Mapping[str, E], gone: Collection[str], saved: Saved) -> None:
        """Writes the change's line, or the file whole where it must be."""
        change = _Change(next_version(self._last_version), dict(put), list(gone))
        is_long = self._changes.byte_count > self._changes_bytes_max
        if (self._folded_counter < 0 or is_long) and not self._is_folding:
            self._save_whole(_Unflushed(change, 0, saved))
            return
        try:
            position = self._changes.write(msgspec.json.encode(change))
        except OSError as error:
            # The line may be in the file nevertheless and must not count: the next change writes the table whole.
            self._folded_counter = -1
            saved(ConfigFileUnwritable(self._path, error, self._complaints))
            return
        self._last_version = change.version
        self._unflushed.append(_Unflushed(change, position, saved))

    def _take_up_to(self, counter: int) -> None:
        """Applies the changes up to that version, which are flushed by now, and answers them."""
        while self._unflushed and self._unflushed[0].change.version.counter <= counter:
            flushed = self._unflushed.popleft()
            self._apply(flushed.change)
            self._answer(flushed)

    def _refuse_unflushed(self, error: OSError) -> None:
        """Refuses all changes that are not flushed: after a failed flush nobody knows which lines are on the disk."""
        refused, self._unflushed = self._unflushed, deque()
        if not refused:
            return
        self._folded_counter = -1
        if self._changes.undo(refused[0].position):
            self._last_version = self.table.data_version
        refusal = ConfigFileUnwritable(self._path, error, self._complaints)
        for one in refused:
            one.saved(refusal)

    def _save_whole(self, last: _Unflushed[E]) -> None:
        """Writes the file with all changes that are not flushed and `last`, and answers them; or refuses `last`."""
        before, changes = self.table, [*self._unflushed, last]
        table = copy(before)
        setattr(table, self._entries_field, dict(self.entries))
        self._set_table(table)
        for one in changes:
            self._apply(one.change)
        try:
            self._replace_file()
        except ConfigFileUnwritable as error:
            self._set_table(before)
            last.saved(error)
            return
        self._unflushed.clear()
        self._last_version = last.change.version
        self._folded(last.change.version.counter)
        for one in changes:
            self._answer(one)

    def _answer(self, flushed: _Unflushed[E]) -> None:
        if self._is_open:
            for name in (*flushed.change.put, *flushed.change.gone):
                self._on_changed(name)
        flushed.saved(None)

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

    # --- the whole file

    def _write_whole(self) -> None:
        """Writes the table to the file, and removes the change log. Raises ConfigFileUnwritable."""
        self._replace_file()
        self._folded(self.table.data_version.counter)

    def _replace_file(self) -> None:
        try:
            self._files.replace(self._path, msgspec.json.encode(self.table), Backup.COPY)
        except OSError as error:
            raise ConfigFileUnwritable(self._path, error, self._complaints) from error

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
        if self.table.data_version.counter == counter and not self._unflushed:
            try:
                self._changes.clear()
            except OSError as error:
                words = "%s.changes cannot be removed; its changes are in the file by now: %s"
                self._complaints.warn(self._path.name, "changes not removed", words, self._path, error)


def next_version(version: DataVersion) -> DataVersion:
    """Returns the version after a change: the counter raised by one, and the present time."""
    return DataVersion(
        counter=version.counter + 1, state_version=version.state_version, timestamp=time.time_ns() // 1_000_000
    )
