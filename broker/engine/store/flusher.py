"""The flusher: a thread that flushes the log to the disk and writes checkpoints. The store has no other thread.

`sync`: an append that must wait registers a callback with `when_flushed`; the thread flushes everything written so far
with one fdatasync and has all callbacks that waited for it called in one turn of the event loop (group commit,
RocketMQ's `GroupCommitService`). While a flush runs, the callbacks of the next one gather.
`async`: a flush every `flush_interval_ms`; a power cut may lose messages acknowledged since. No callback waits
(RocketMQ's `FlushRealTimeService`).

A flush that fails stops the store, and the waiting callbacks get the error. Of the store, the thread uses only
`CommitLog.sync`, the files named in a checkpoint plan, and the checkpoint file; everything else is the event loop's.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from broker.engine.store.checkpoint import Checkpoint, CheckpointFile
from broker.engine.store.commit_log import CommitLog
from broker.engine.store.disk_failure import DiskFailure
from broker.engine.store.errors import StoreClosed, StoreError
from broker.engine.store.files import NO_DESCRIPTOR_ERRNOS, FileLayer

logger = logging.getLogger(__name__)

FlushCallback = Callable[[Exception | None], None]


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """A checkpoint to be written once the log up to its end and `changed_files` are on the disk."""

    checkpoint: Checkpoint
    changed_files: tuple[Path, ...]


class Flusher:
    """The flusher. `flushed` is the commit-log offset up to which everything is on the disk, `checkpointed` the end of
    the last checkpoint."""

    def __init__(
        self,
        log: CommitLog,
        checkpoint_file: CheckpointFile,
        files: FileLayer,
        disk_failure: DiskFailure,
        *,
        is_sync: bool,
        interval_ms: int,
    ) -> None:
        self.flushed = log.end
        # After a kill, a start indexes only the records from here on again.
        self.checkpointed = log.end
        self._log = log
        self._checkpoint_file = checkpoint_file
        self._files = files
        self._disk_failure = disk_failure
        self._is_sync = is_sync
        self._interval_s = interval_ms / 1000
        self._waiters: deque[tuple[int, FlushCallback]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._requested = 0
        self._plan: CheckpointPlan | None = None
        self._is_plan_put_off = False
        self._is_stopping = False
        self._is_asleep = False
        self._condition = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="store-flusher", daemon=True)
        self._thread.start()

    # --- event loop

    def when_flushed(self, end: int, callback: FlushCallback) -> None:
        """Calls `callback(None)` on the loop once the log is flushed up to `end`, or with the error that prevents it.

        Calls it at once when there is nothing to wait for: in async mode, or when that part is flushed already.
        """
        if not self._is_sync or end <= self.flushed:
            callback(None)
            return
        if self._disk_failure.error is not None or self._is_stopping:
            callback(self._disk_failure.error or self._closed_error())
            return
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
        self._waiters.append((end, callback))
        if end > self._requested:
            self._requested = end
            self._wake()
        # The flush may have ended between the check above and the append, when this callback did not wait yet.
        if end <= self.flushed or self._disk_failure.error is not None:
            self._loop.call_soon(self._release, self._disk_failure.error)

    @property
    def has_plan(self) -> bool:
        """Tells whether a checkpoint was handed over and is not written yet."""
        return self._plan is not None

    def write_checkpoint(self, plan: CheckpointPlan) -> None:
        """Hands a checkpoint over to the thread. Not allowed while `has_plan`."""
        assert self._plan is None
        self._plan = plan
        self._wake()

    def _wake(self) -> None:
        if self._is_asleep:
            with self._condition:
                self._condition.notify()

    def _release(self, error: Exception | None) -> None:
        """Calls the callbacks whose part of the log is flushed; with `error`, the others get it."""
        waiters = self._waiters
        while waiters and (error is not None or waiters[0][0] <= self.flushed):
            end, callback = waiters.popleft()
            try:
                callback(None if end <= self.flushed else error)
            except Exception:
                # The other callbacks must be called all the same.
                logger.exception("a callback for the flush up to %d failed", end)

    def stop(self) -> CheckpointPlan | None:
        """Ends the thread. Callbacks that still wait get StoreClosed; their messages are in the log all the same.

        Returns the checkpoint that was handed over and not written: its files may not be flushed yet.
        """
        with self._condition:
            self._is_stopping = True
            self._condition.notify()
        self._thread.join()
        self._release(self._disk_failure.error or self._closed_error())
        return self._plan

    def _closed_error(self) -> StoreClosed:
        return StoreClosed("the store was closed before the message was flushed")

    # --- flusher thread

    def _run(self) -> None:
        while True:
            with self._condition:
                self._is_asleep = True
                self._condition.wait_for(self._has_work, self._interval_s)
                self._is_asleep = False
                if self._is_stopping:
                    return
            try:
                self._round()
            except Exception as error:
                # Any error: the thread ends, so the waiting callbacks must get it.
                self._notify_waiters(self._disk_failure.record("flushing to the disk", error))
                return

    def _has_work(self) -> bool:
        has_plan = self._plan is not None and not self._is_plan_put_off
        return self._is_stopping or has_plan or self._requested > self.flushed

    def _round(self) -> None:
        """Flushes the log and writes the checkpoint that was handed over, if any. Raises OSError."""
        # Read the plan before the flush: one handed over during the flush may end behind the part that is flushed.
        plan = self._plan
        self._sync_log()
        if plan is not None:
            self._write(plan)

    def _write(self, plan: CheckpointPlan) -> None:
        """Writes the checkpoint; while no file can be opened (too many are open), the next round tries again."""
        try:
            if not sync_files(plan.changed_files, self._files, self._goes_on):
                return
            self._checkpoint_file.write(plan.checkpoint)
        except OSError as error:
            if error.errno not in NO_DESCRIPTOR_ERRNOS:
                raise
            if not self._is_plan_put_off:
                logger.warning("checkpoints are put off until files can be opened again: %s", error)
            self._is_plan_put_off = True
            return
        self.checkpointed = plan.checkpoint.end
        self._plan = None
        self._is_plan_put_off = False

    def _sync_log(self) -> None:
        if self._log.end > self.flushed:
            self.flushed = self._log.sync()
            self._notify_waiters(None)

    def _goes_on(self) -> bool:
        """Flushes the log if callbacks wait for it. Returns False once the thread is to stop.

        Called between two files of a checkpoint, of which there may be thousands.
        """
        if self._requested > self.flushed:
            self._sync_log()
        return not self._is_stopping

    def _notify_waiters(self, error: StoreError | None) -> None:
        loop = self._loop
        if loop is None or not self._waiters:
            return
        try:
            loop.call_soon_threadsafe(self._release, error)
        except RuntimeError:
            # The event loop is closed: no callback can run. The next `when_flushed` sets the new loop.
            return


def sync_files(paths: Iterable[Path], files: FileLayer, goes_on: Callable[[], bool]) -> bool:
    """Flushes the files one after the other; stops and returns False when `goes_on` returns False before one of them.

    Raises OSError.
    """
    for path in paths:
        if not goes_on():
            return False
        files.sync_path(path)
    return True
