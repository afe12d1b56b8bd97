"""When the progress of the delay levels is written, so that a kill neither loses nor repeats a delivery.

What the file promises is told in `progress.py`.
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

# How long the file may lag behind the log (which is read over from there on after a kill).
SAVE_INTERVAL_S = 1.0


class Tables(NamedTuple):
    """`next_offsets`: level to queue offset; `segments`: level to segment's start to queue offset."""

    next_offsets: dict[int, int]
    segments: dict[int, dict[int, int]]


class DelaySaving:
    """`tables`: how far the levels are now. `clock`: ms since the epoch. `saved` is what the file says."""

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
        """Where there is no file, copies may stand anywhere in the log."""
        saved = self._file.read()
        self.saved = saved if saved is not None else DelayProgress({}, delivering_from=0)
        return self.saved

    def recovered(self) -> None:
        """All copies are counted. Raises OSError."""
        self.saved.delivering_from = None
        if self._tables() != (self.saved.next_offsets, self.saved.segments):
            self.write(None)

    def begin(self) -> None:
        """The file says that copies may follow, before the first one does. Raises StoreFull when it cannot."""
        if self.saved.delivering_from is None:
            try:
                self.write(self._store.max_commit_log_offset)
            except OSError as error:
                raise StoreFull(f"{self._file} cannot be written ({error.strerror}); free space") from error
        if self._saving is None:
            self._saving = asyncio.get_running_loop().call_later(SAVE_INTERVAL_S, self._save)

    def copied(self, end: int) -> None:
        """Copies stand in the log up to the commit-log offset `end`."""
        self._copied_end = end

    async def stop(self) -> None:
        """Saves how far it came, once the last copies are flushed. Raises OSError."""
        if self._saving is None:
            return
        self.forget()
        flushed = asyncio.get_running_loop().create_future()
        self._store.when_flushed(self._copied_end, flushed.set_result)
        if await flushed is None:
            self.write(None)

    def forget(self) -> None:
        """Ends without a word, as a kill does."""
        if self._saving is not None:
            self._saving.cancel()
            self._saving = None

    def write(self, delivering_from: int | None, tables: Tables | None = None) -> None:
        """In the file first: what is only believed to stand there would be missed after a kill. Raises OSError."""
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
        """Counts the copies so far, once they are flushed."""
        self._saving = None
        end, tables = self._copied_end, self._tables()

        def flushed(failure: Exception | None) -> None:
            if failure is not None:
                logger.error("the progress of delays is not saved: %s", failure)
                return
            is_complete = self._tables() == tables and self._copied_end == end
            try:
                self.write(None if is_complete else end, tables)
            except OSError as error:
                # The file still says where the log tells the rest.
                logger.error("the progress of delays is not saved: %s", error)

        self._store.when_flushed(end, flushed)
