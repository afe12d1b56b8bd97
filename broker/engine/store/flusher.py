"""The flusher: the one other thread of the store. It brings the log to the disk and writes checkpoints.

`sync`: an append that waits registers with `when_flushed`; the thread syncs everything written so far with one
fdatasync and releases all who waited for it in one call on the event loop (group commit, RocketMQ's
`GroupCommitService`). While one sync runs, the next group gathers.
`async`: every `flush_interval_ms`; a power cut may take what was acknowledged since. Nobody waits.

A sync that fails puts up the fence and is told to all who wait. The thread touches of the store only
`CommitLog.sync`, the files named in a checkpoint plan, and the checkpoint file; everything else belongs to the loop.
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
from broker.engine.store.errors import StoreClosed, StoreError
from broker.engine.store.fence import Fence
from broker.engine.store.files import NO_DESCRIPTOR_ERRNOS, FileLayer

logger = logging.getLogger(__name__)

FlushCallback = Callable[[Exception | None], None]


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """A checkpoint that becomes true once the log up to its end and `changed_files` are on the disk."""

    checkpoint: Checkpoint
    changed_files: tuple[Path, ...]


class Flusher:
    """`flushed` is the commit-log offset up to which everything is on the disk, `checkpointed` that of the last
    checkpoint."""

    def __init__(
        self,
        log: CommitLog,
        checkpoint_file: CheckpointFile,
        files: FileLayer,
        fence: Fence,
        *,
        is_sync: bool,
        interval_ms: int,
    ) -> None:
        self.flushed = log.end
        # A start after a kill needs nothing of the log's indexes below this.
        self.checkpointed = log.end
        self._log = log
        self._checkpoint_file = checkpoint_file
        self._files = files
        self._fence = fence
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
        """Calls `callback(None)` on the loop once the log is safe up to `end`, or with the error that prevents it.

        At once where nothing has to be waited for: in async mode, or when it is safe already.
        """
        if not self._is_sync or end <= self.flushed:
            callback(None)
            return
        if self._fence.error is not None or self._is_stopping:
            callback(self._fence.error or self._closed_error())
            return
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
        self._waiters.append((end, callback))
        if end > self._requested:
            self._requested = end
            self._wake()
        # The thread may have finished between the first look and the append, and seen nobody waiting.
        if end <= self.flushed or self._fence.error is not None:
            self._loop.call_soon(self._release, self._fence.error)

    @property
    def has_plan(self) -> bool:
        return self._plan is not None

    def write_checkpoint(self, plan: CheckpointPlan) -> None:
        """Hands over a checkpoint, unless one is under way (`has_plan`)."""
        assert self._plan is None
        self._plan = plan
        self._wake()

    def _wake(self) -> None:
        if self._is_asleep:
            with self._condition:
                self._condition.notify()

    def _release(self, error: Exception | None) -> None:
        waiters = self._waiters
        while waiters and (error is not None or waiters[0][0] <= self.flushed):
            end, callback = waiters.popleft()
            try:
                callback(None if end <= self.flushed else error)
            except Exception:
                # The others have waited for the same flush.
                logger.exception("telling somebody of the flush up to %d failed", end)

    def stop(self) -> CheckpointPlan | None:
        """Ends the thread. Who still waits is told that the store was closed; nothing is lost by it.

        Returns the checkpoint that was handed over and not written: its files are not on the disk yet.
        """
        with self._condition:
            self._is_stopping = True
            self._condition.notify()
        self._thread.join()
        self._release(self._fence.error or self._closed_error())
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
                # Whatever it was: a flusher that is gone must not leave anybody waiting.
                self._tell(self._fence.put_up("flushing to the disk", error))
                return

    def _has_work(self) -> bool:
        has_plan = self._plan is not None and not self._is_plan_put_off
        return self._is_stopping or has_plan or self._requested > self.flushed

    def _round(self) -> None:
        # First the plan, then the log: a plan that comes during the sync reaches further than the sync does.
        plan = self._plan
        self._sync_log()
        if plan is not None:
            self._write(plan)

    def _write(self, plan: CheckpointPlan) -> None:
        """A checkpoint for which no file can be opened just now is tried again in the next round."""
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
            self._tell(None)

    def _goes_on(self) -> bool:
        """Called between two files of a checkpoint, which may have thousands: neither senders nor the stop wait."""
        if self._requested > self.flushed:
            self._sync_log()
        return not self._is_stopping

    def _tell(self, error: StoreError | None) -> None:
        loop = self._loop
        if loop is None or not self._waiters:
            return
        try:
            loop.call_soon_threadsafe(self._release, error)
        except RuntimeError:
            # The loop was closed: nobody is there to hear it, and the next waiter brings a new loop.
            return


def sync_files(paths: Iterable[Path], files: FileLayer, goes_on: Callable[[], bool]) -> bool:
    """Brings files to the disk, one after the other; returns False where `goes_on` did so before the last.

    Raises OSError.
    """
    for path in paths:
        if not goes_on():
            return False
        files.sync_path(path)
    return True
