"""The heartbeat of all open sockets of this process, and the check of their viewers that goes with it.

One loop for all sockets: every HEARTBEAT_S it checks all viewers together and then lets each socket send its
heartbeat, or close. So 1,000 idle sockets of 1,000 sessions cost 24 queries a minute (two for each 500 viewers, every
10 s) and nothing else. Runs while a socket is open. A check that the database refuses is made up for at the next beat.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from channels.db import database_sync_to_async
from django.db import Error as DatabaseError

from mqadmin.live.viewers import Viewer, close_codes

logger = logging.getLogger(__name__)

HEARTBEAT_S = 10.0


class OpenSocket(Protocol):
    """An open socket. Both methods return at once: a client that reads slowly delays no other."""

    viewer: Viewer

    def send_heartbeat_soon(self) -> None: ...

    def close_soon(self, code: int) -> None: ...


class Heartbeats:
    """Checks the viewers of this process's open sockets and has the heartbeats sent. Used on the event loop only."""

    def __init__(self, interval_s: float = HEARTBEAT_S) -> None:
        self.interval_s = interval_s
        self._sockets: set[OpenSocket] = set()
        self._loop_task: asyncio.Task[None] | None = None

    def add(self, socket: OpenSocket) -> None:
        self._sockets.add(socket)
        if self._loop_task is None:
            self._loop_task = asyncio.create_task(self._run())

    def remove(self, socket: OpenSocket) -> None:
        self._sockets.discard(socket)
        if not self._sockets and self._loop_task is not None:
            self._loop_task.cancel()
            self._loop_task = None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self.interval_s)
            codes = await self._checked({socket.viewer for socket in self._sockets})
            for socket in self._sockets:
                if code := codes.get(socket.viewer):
                    socket.close_soon(code)
                else:
                    socket.send_heartbeat_soon()

    async def _checked(self, viewers: set[Viewer]) -> dict[Viewer, int]:
        try:
            codes: dict[Viewer, int] = await database_sync_to_async(close_codes)(viewers)
        except DatabaseError as error:
            logger.warning("the viewers of %d open pages were not checked: %s", len(viewers), error)
            return {}
        return codes
