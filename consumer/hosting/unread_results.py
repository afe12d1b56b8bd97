"""Reads what the processes of a prefork pool still write when their main process stops, so that each of them can end.

A main process that stops forgets the tasks that it has handed to a process and has not heard to have begun (Celery's
`AsynPool.flush`); the process carries such a task out all the same. Celery reads results only as long as it waits for
one. So a process with the result of a forgotten task would wait 30 s for it to be read (billiard), and for good where
the result is longer than a pipe holds (64 KiB; the error of a task with its tracebacks has 100) while the main process
waits for its end.

The other way round, Celery would wait for good for the rest of a result whose process was killed while it wrote it: the
main process has the pipe's other end open, too, so no end of file comes.
"""

from __future__ import annotations

import os
import select
from functools import partial
from typing import Any

from billiard.pool import TERMINATE
from celery.concurrency import asynpool

# How long the end of a process is waited for before all of them are looked at again.
LOOK_INTERVAL_S = 0.1
_READ_BYTES = 64 * 1024
# More results than a process has ever had: the largest number that the counter of those read can hold.
_ALL = 2**31 - 1


class ResultHandler(asynpool.ResultHandler):
    """Goes on reading results until all processes have ended, also where Celery's own waits for none any more."""

    _state: int
    # By the numbers of the processes: how many of its results were read.
    on_ready_counters: dict[int, Any]
    # By the descriptors that their results are read from: the processes.
    fileno_to_outq: dict[int, Any]

    def on_stop_not_started(self) -> None:
        """Runs when the pool is closed, before its processes are waited for; a cold shutdown may run it in itself."""
        super().on_stop_not_started()
        while self._state != TERMINATE and (running := self._running()):
            for counter in tuple(self.on_ready_counters.values()):
                counter.get_obj().value = _ALL  # without its lock, which a process that was killed may have held
            _throw_away(running)

    def _flush_outqueue(self, fd: int, remove: Any, process_index: dict[int, Any], on_state_change: Any) -> Any:
        """Reads one result of a process; gives up on a pipe whose process has ended within a result."""
        process = process_index.get(fd)
        if process is None:
            return super()._flush_outqueue(fd, remove, process_index, on_state_change)  # type: ignore[misc]
        reader = process.outq._reader
        reader._recv = partial(type(reader)._recv, reader, read=partial(_read_from, process))
        try:
            return super()._flush_outqueue(fd, remove, process_index, on_state_change)  # type: ignore[misc]
        finally:
            del reader._recv

    def _running(self) -> list[int]:
        """Returns the descriptors that the results of the processes which have not ended are read from."""
        return [fd for fd, process in tuple(self.fileno_to_outq.items()) if process._is_alive()]


def _read_from(process: Any, descriptor: int, byte_count: int) -> bytes:
    """Reads from the pipe when something is in it. Raises OSError when there is nothing and the process has ended."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while not poll.poll(LOOK_INTERVAL_S * 1000):
        # Looked at again: it may have written the rest, and ended, since.
        if not process._is_alive() and not poll.poll(0):
            raise OSError("the process ended within a result")
    return os.read(descriptor, byte_count)


def _throw_away(descriptors: list[int]) -> None:
    """Reads what lies in these pipes, or comes within LOOK_INTERVAL_S. Nobody waits for it."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    for descriptor, _ in poll.poll(LOOK_INTERVAL_S * 1000):
        try:
            os.read(descriptor, _READ_BYTES)
        except OSError:  # nothing in it any more: a signal's handler has read it; or the pipe of an ended process
            pass


def read_results_to_the_end() -> None:
    """Is called before a worker makes its pool: pools that this process makes from now on have this result handler."""
    asynpool.AsynPool.ResultHandler = ResultHandler
