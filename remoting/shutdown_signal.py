"""Tells every process and thread of a worker that the worker is shutting down.

As a rule a Celery worker's main process alone receives SIGTERM (the exception: `consumer/hosting/instance.py`); tasks
run in processes that were forked from it, or in threads of it. The signal is a file descriptor that is made before the
fork: one `set()` makes it readable in all of them, for good, and event loops, threads and Celery's hub can wait for it.
Where a main process is killed, Celery has the kernel kill its children.

Invariant: a signal handler, or a receiver of Celery's `worker_shutting_down` (which Celery calls in its handler), calls
`set()` and no more; docs/ARCHITECTURE.md names the handlers that do more, and why they may. A handler interrupts its
own thread anywhere, also inside another run of itself; so it must not take a lock (`threading.Event.set()` takes one,
logging does), not log and not touch the database: what it waits for may be held by the very frame that it interrupted.
The part that has to act waits for the signal in a thread, a task or an event loop of its own.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys


class ShutdownSignal:
    """Made in the main process before it forks. Set once, it stays set."""

    def __init__(self, *, has_eventfd: bool = sys.platform == "linux") -> None:
        if has_eventfd:
            self._read_fd = self._write_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        else:  # macOS has none: a pipe, from which nothing is ever read
            self._read_fd, self._write_fd = os.pipe()
            os.set_blocking(self._write_fd, False)

    def set(self) -> None:
        """Sets the signal for all processes that share it. Safe in a signal handler; setting it again is harmless."""
        try:
            # The eight bytes that an eventfd adds to its counter; a pipe takes them as they are.
            os.write(self._write_fd, _ONE)
        except BlockingIOError:  # a pipe that was filled by setting it thousands of times is readable all the same
            pass

    @property
    def is_set(self) -> bool:
        return self._poll(0)

    async def wait(self) -> None:
        """Returns when the signal is set."""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        # A descriptor of its own for each waiting task: a selector accepts a number only once.
        fd = os.dup(self._read_fd)
        loop.add_reader(fd, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(fd)
            os.close(fd)

    def wait_in_thread(self, timeout_s: float) -> bool:
        """Blocks the calling thread until the signal is set; returns False after `timeout_s`."""
        return self._poll(timeout_s)

    def fileno(self) -> int:
        """Returns the descriptor that becomes readable, for selectors and for Celery's hub. Never to be read from."""
        return self._read_fd

    def close(self) -> None:
        for fd in {self._read_fd, self._write_fd}:
            os.close(fd)

    def _poll(self, timeout_s: float) -> bool:
        poll = select.poll()  # select() refuses descriptors above 1023
        poll.register(self._read_fd, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))


_ONE = (1).to_bytes(8, sys.byteorder)
