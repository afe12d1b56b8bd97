"""The changes that this process hears of through the Channels layer, once for all pages that it keeps fresh.

One channel listens for all sockets: it joins a live group when the first page shows something of it, and leaves with
the last one. So a change is received and read once, however many pages are open, and an idle page costs Redis nothing.
Taking a change only sets flags: nothing waits here, and the channel's queue stays empty. On the event loop only.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection
from typing import Any, Protocol

from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from mqadmin.live.events import live_group

logger = logging.getLogger(__name__)

# A cluster and a consumer group of it; "" for the cluster itself.
Thing = tuple[str, str]
LISTEN_AGAIN_S = 1.0


class ListeningSocket(Protocol):
    """A page's socket."""

    def take_change(self, change: dict[str, Any]) -> None:
        """Notes a change of something that the page shows. Returns at once."""


class ChangeListener:
    """Hears of changes for this process's pages. Runs while a page is open."""

    def __init__(self) -> None:
        self._sockets: defaultdict[Thing, set[ListeningSocket]] = defaultdict(set)
        self._joined: defaultdict[str, int] = defaultdict(int)
        self._lock = asyncio.Lock()
        self._channel = ""
        self._loop_task: asyncio.Task[None] | None = None

    async def add(self, socket: ListeningSocket, things: Collection[Thing]) -> None:
        """Has the socket hear of all changes of these things from the return on. Raises OSError or RedisError."""
        async with self._lock:
            layer = get_channel_layer()
            if self._loop_task is None:
                self._channel = await layer.new_channel()
                self._loop_task = asyncio.create_task(self._listen(layer, self._channel))
            for thing in things:
                self._sockets[thing].add(socket)
                name = live_group(*thing)
                self._joined[name] += 1
                if self._joined[name] == 1:
                    await layer.group_add(name, self._channel)

    async def remove(self, socket: ListeningSocket, things: Collection[Thing]) -> None:
        """Lets the socket hear nothing any more of those of these things that it was added with."""
        async with self._lock:
            left = [name for thing in things if (name := self._forget(socket, thing))]
            if not self._joined and self._loop_task is not None:
                self._loop_task.cancel()
                self._loop_task = None
            for name in left:
                await get_channel_layer().group_discard(name, self._channel)

    def _forget(self, socket: ListeningSocket, thing: Thing) -> str:
        """Returns the live group that nothing is shown of any more; else ""."""
        if socket not in self._sockets.get(thing, ()):
            return ""
        self._sockets[thing].discard(socket)
        if not self._sockets[thing]:
            del self._sockets[thing]
        name = live_group(*thing)
        self._joined[name] -= 1
        if self._joined[name]:
            return ""
        del self._joined[name]
        return name

    async def _listen(self, layer: Any, channel: str) -> None:
        while True:
            try:
                self._pass_on(await layer.receive(channel))
            except (OSError, RedisError) as error:
                logger.warning("open pages hear of no changes for %.0f s: %s", LISTEN_AGAIN_S, error)
                await asyncio.sleep(LISTEN_AGAIN_S)
            except Exception:
                # Of another version, perhaps. All pages of this process depend on what comes after it.
                logger.exception("an event for open pages cannot be read; they hear on in %.0f s", LISTEN_AGAIN_S)
                await asyncio.sleep(LISTEN_AGAIN_S)

    def _pass_on(self, event: dict[str, Any]) -> None:
        for change in event["changes"]:
            for socket in self._sockets.get((change["cluster"], change["group"]), ()):
                socket.take_change(change)
