"""When the progress of the delay levels is written, so that a kill neither loses nor repeats a delivery.

The file's format and its guarantees are documented in `progress.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from broker.engine.schedule.progress import DelayProgress, ProgressFile
from broker.engine.store.errors import StoreFull
from broker.engine.store.message_store import MessageStore

logger = logging.getLogger(__name__)

# How long the file may lag behind the log. After a kill the log is read again from the offset that the file names.
SAVE_INTERVAL_S = 1.0


class Tables(NamedTuple):
    """How far the levels are delivered.

    `next_offsets`: level to queue offset; `segments`: level to segment's start to queue offset.
    """

    next_offsets: dict[int, int]
    segments: dict[int, dict[int, int]]


class DelaySaving:
    """Writes the progress file: before the first copy is appended, and `SAVE_INTERVAL_S` later with what was delivered.

    `tables` returns the present progress. `clock`: ms since the epoch. `saved` is the content of the file.
    """

    def __init__(
        self, store: MessageStore, file: ProgressFile, tables: Callable[[], Tables], clock: Callable[[], int]
    ) -> None:
        self._store = store
        self._file = file
        self._tables = tables
        self._clock = clock
        self._copied_end = 0
        self._saving: asyncio.TimerHandle | None = None
        self.saved = DelayProgress({})

    def read(self) -> DelayProgress:
        """Returns the file's content; where there is no file, copies may stand anywhere in the log."""
        saved = self._file.read()
        self.saved = saved if saved is not None else DelayProgress({}, delivering_from=0)
        return self.saved

    def recovered(self) -> None:
        """Notes that all copies in the log are counted; writes the file where that changed a count. Raises OSError."""
        self.saved.delivering_from = None
        if self._tables() != (self.saved.next_offsets, self.saved.segments):
            self.write(None)

    def begin(self) -> None:
        """Writes, before the first copy is appended, from which log offset on copies may follow, and starts the timer
        that saves the progress. Raises StoreFull when the file cannot be written."""
        if self.saved.delivering_from is None:
            try:
                self.write(self._store.max_commit_log_offset)
            except OSError as error:
                raise StoreFull(f"{self._file} cannot be written ({error.strerror}); free space") from error
        if self._saving is None:
            self._saving = asyncio.get_running_loop().call_later(SAVE_INTERVAL_S, self._save)

    def copied(self, end: int) -> None:
        """Notes that copies were appended up to the commit-log offset `end`."""
        self._copied_end = end

    async def stop(self) -> None:
        """Saves the progress, once the last copies are flushed. Raises OSError."""
        if self._saving is None:
            return
        self.forget()
        flushed = asyncio.get_running_loop().create_future()
        self._store.when_flushed(self._copied_end, flushed.set_result)
        if await flushed is None:
            self.write(None)

    def forget(self) -> None:
        """Cancels the pending write, and writes nothing: as after a kill."""
        if self._saving is not None:
            self._saving.cancel()
            self._saving = None

    def write(self, delivering_from: int | None, tables: Tables | None = None) -> None:
        """Writes the progress to the file, and only then sets `saved`: nothing may rely on progress that a kill would
        lose. Raises OSError."""
        next_offsets, segments = tables or self._tables()
        progress = DelayProgress(
            next_offsets=next_offsets,
            segments=segments,
            delivering_from=delivering_from,
            counter=self.saved.counter + 1,
            changed_ms=self._clock(),
        )
        self._file.write(progress)
        self.saved = progress

    def _save(self) -> None:
        """Saves the progress as of now, once the copies appended until now are flushed."""
        self._saving = None
        end, tables = self._copied_end, self._tables()

        def flushed(failure: Exception | None) -> None:
            if failure is not None:
                logger.error("the progress of the delay levels is not saved: %s", failure)
                return
            is_complete = self._tables() == tables and self._copied_end == end
            try:
                self.write(None if is_complete else end, tables)
            except OSError as error:
                # Nothing is lost: the file still says from which offset on the log must be read for copies.
                logger.error("the progress of the delay levels is not saved: %s", error)

        self._store.when_flushed(end, flushed)
