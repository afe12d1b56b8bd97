"""Tells the long tasks of a Celery worker that the worker is stopping.

Celery tells only the worker's main process; a task runs in a child of it (prefork) or in a thread. The bell is an
eventfd made before the children are forked: ringing it once makes it readable in all of them, for good, and an event
loop can wait for it. A main process that is killed needs no bell: Celery has the kernel kill its children with it.
"""

from __future__ import annotations

import asyncio
import os
import select
from typing import Any


class StopBell:
    """Made when the worker starts, in its main process."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def ring(self) -> None:
        """Safe in a signal handler."""
        os.eventfd_write(self._fd, 1)

    @property
    def has_rung(self) -> bool:
        return bool(select.select([self._fd], [], [], 0)[0])

    async def wait(self) -> None:
        """Returns when it has rung. Nobody takes the ring away from the others."""
        loop = asyncio.get_running_loop()
        rung = asyncio.Event()
        loop.add_reader(self._fd, rung.set)
        try:
            await rung.wait()
        finally:
            loop.remove_reader(self._fd)

    def wake(self, hub: Any) -> None:
        """Celery's own event loop looks whether to stop when something wakes it, else once a second."""
        hub.add_reader(self._fd, hub.remove_reader, self._fd)

    def close(self) -> None:
        os.close(self._fd)
