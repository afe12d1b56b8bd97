"""Tells the instances of a Celery worker at once that the worker is stopping, also while the database is away.

Celery tells only the main process. The bell is an eventfd made there before children are forked: rung once it is
readable in all of them for good, and an event loop can wait for it. (When the main process is killed, Celery has the
kernel kill its children.)
"""

from __future__ import annotations

import asyncio
import os


class StopBell:
    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def ring(self) -> None:
        """Safe in a signal handler."""
        os.eventfd_write(self._fd, 1)

    async def wait(self) -> None:
        """Returns when it has rung; the ring stays for the others."""
        loop = asyncio.get_running_loop()
        rung = asyncio.Event()
        # A descriptor of our own: one loop per thread may wait on the bell, and selectors know a number once.
        fd = os.dup(self._fd)
        loop.add_reader(fd, rung.set)
        try:
            await rung.wait()
        finally:
            loop.remove_reader(fd)
            os.close(fd)
