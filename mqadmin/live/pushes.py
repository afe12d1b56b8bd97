"""Pushes regions to open pages: rendered once for all who look at the same page with the same rights.

Pages of one address and language are served together, at most once in PUSH_INTERVAL_S: those that something changed on
and that are ready. Their viewers are judged first (who is still logged in, who sees the page's clusters, with which
rights); then for all of the same rights one viewer's request is answered (regions.py), and all who have them still
get the answer. What changes meanwhile makes them stale again. A page says that it is ready when it has shown what it
got and somebody looks at it, so no socket ever has more than one region under way: one that reads slowly, or not at
all, or lies in a hidden tab, costs nothing until it asks, and gets what is so by then.

A page for which nothing can be pushed is told to fetch its region by itself; its viewer is judged before, too. On the
event loop only; idle pages cost one waiting task for each address.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any, Protocol

from channels.db import database_sync_to_async
from django.db import Error as DatabaseError

from mqadmin.live.regions import PageAddress, Regions
from mqadmin.live.viewers import Judged, Viewer, judged

logger = logging.getLogger(__name__)

PUSH_INTERVAL_S = 0.5
# What happens at one moment is told in several events, a few milliseconds apart.
GATHER_S = 0.02
# A region is pushed to nobody who was judged longer ago.
JUDGED_FOR_S = 2.0
# Viewers of the same rights that are asked in turn, where the first one just left or changed the language elsewhere.
ASKED_MAX = 3


class PushedSocket(Protocol):
    """A page's socket. All methods return at once."""

    viewer: Viewer
    scope: dict[str, Any]
    address: PageAddress
    # The clusters that the page shows something of.
    cluster_ids: frozenset[int]

    @property
    def wants_region(self) -> bool:
        """Tells whether something changed, and the page is ready."""

    def begin_region(self) -> None:
        """Notes that what changed until now will be in the region that comes."""

    def push_soon(self, frame: bytes, digest: bytes) -> None:
        """Sends the region, unless the page has it already."""

    def fetch_soon(self) -> None:
        """Tells the page to fetch its region by itself."""

    def close_soon(self, code: int) -> None: ...


class Pushes:
    """Serves the pages of this process. Runs while one is open."""

    def __init__(self, *, interval_s: float = PUSH_INTERVAL_S, judged_for_s: float = JUDGED_FOR_S) -> None:
        self._interval_s = interval_s
        self._regions = Regions()
        self._judges = _Judges(judged_for_s)
        self._pages: dict[PageAddress, _Page] = {}
        self._sockets: set[PushedSocket] = set()

    def add(self, socket: PushedSocket) -> None:
        """Serves the socket, where it names a page, and judges its viewer with the others."""
        self._sockets.add(socket)
        self._judges.viewers[socket.viewer] += 1
        if not socket.address.page:
            return
        page = self._pages.get(socket.address)
        if page is None:
            page = self._pages[socket.address] = _Page()
            page.loop_task = asyncio.create_task(self._serve(socket.address, page))
        page.sockets.add(socket)

    def remove(self, socket: PushedSocket) -> None:
        if socket not in self._sockets:
            return
        self._sockets.discard(socket)
        self._judges.leave(socket.viewer)
        page = self._pages.get(socket.address)
        if page is None:
            return
        page.sockets.discard(socket)
        if not page.sockets:
            del self._pages[socket.address]
            if page.loop_task is not None:
                page.loop_task.cancel()

    def wake(self, address: PageAddress) -> None:
        """Has the page's sockets that want a region served soon."""
        if (page := self._pages.get(address)) is not None:
            page.has_work.set()

    async def close_code(self, socket: PushedSocket) -> int:
        """Returns the code that closes the socket instead of telling it what changed. Raises DatabaseError."""
        verdicts = await self._judges.verdicts({socket.viewer})
        return verdicts[socket.viewer].close_code(socket.cluster_ids)

    async def _serve(self, address: PageAddress, page: _Page) -> None:
        while True:
            await page.has_work.wait()
            await asyncio.sleep(GATHER_S)
            page.has_work.clear()
            wanting = [socket for socket in page.sockets if socket.wants_region]
            if not wanting:
                continue
            for socket in wanting:
                socket.begin_region()
            try:
                await self._push(address, wanting)
            except DatabaseError as error:
                # Their own request says what is wrong.
                logger.warning("the region of %d open pages was not rendered: %s", len(wanting), error)
                _have_fetched(wanting)
            except Exception:
                # A mistake of ours must not leave these pages as they are until they are loaded anew.
                logger.exception("the region of %d open pages was not rendered", len(wanting))
                _have_fetched(wanting)
            await asyncio.sleep(self._interval_s)

    async def _push(self, address: PageAddress, wanting: Sequence[PushedSocket]) -> None:
        for rights, sockets in (await self._by_rights(wanting)).items():
            frame = await self._rendered(address, sockets)
            # On a busy machine that may have waited for its turn.
            still_there = await self._by_rights(sockets)
            if frame is not None:
                digest = sha256(frame).digest()
                for socket in still_there.pop(rights, ()):
                    socket.push_soon(frame, digest)
            for others in still_there.values():
                _have_fetched(others)

    async def _by_rights(self, sockets: Sequence[PushedSocket]) -> dict[str, list[PushedSocket]]:
        """Judges the viewers, and has the sockets closed of those who may not look any more."""
        verdicts = await self._judges.verdicts({socket.viewer for socket in sockets})
        by_rights: defaultdict[str, list[PushedSocket]] = defaultdict(list)
        for socket in sockets:
            found = verdicts[socket.viewer]
            if code := found.close_code(socket.cluster_ids):
                socket.close_soon(code)
            elif found.rights is not None:
                by_rights[found.rights.digest].append(socket)
        return by_rights

    async def _rendered(self, address: PageAddress, sockets: Sequence[PushedSocket]) -> bytes | None:
        for socket in sockets[:ASKED_MAX]:
            frame = await self._regions.rendered(address, socket.scope)
            if frame is not None:
                return frame
        return None


class _Page:
    """The open sockets of one address and language."""

    def __init__(self) -> None:
        self.sockets: set[PushedSocket] = set()
        self.has_work = asyncio.Event()
        self.loop_task: asyncio.Task[None] | None = None


class _Judges:
    """Judges all viewers together, at most once in `judged_for_s`, however many pages are served meanwhile."""

    def __init__(self, judged_for_s: float) -> None:
        self.viewers: defaultdict[Viewer, int] = defaultdict(int)
        self._judged_for_s = judged_for_s
        self._judged_at_s = float("-inf")
        self._verdicts: dict[Viewer, Judged] = {}
        self._lock = asyncio.Lock()

    def leave(self, viewer: Viewer) -> None:
        self.viewers[viewer] -= 1
        if not self.viewers[viewer]:
            del self.viewers[viewer]
            self._verdicts.pop(viewer, None)

    async def verdicts(self, wanted: Collection[Viewer]) -> dict[Viewer, Judged]:
        """Returns what was found of each. Raises DatabaseError."""
        async with self._lock:
            is_old = time.monotonic() - self._judged_at_s > self._judged_for_s
            if is_old or not self._verdicts.keys() >= set(wanted):
                began_s = time.monotonic()
                self._verdicts = await _judged({*self.viewers, *wanted})
                self._judged_at_s = began_s
            return {viewer: self._verdicts[viewer] for viewer in wanted}


def _have_fetched(sockets: Collection[PushedSocket]) -> None:
    for socket in sockets:
        socket.fetch_soon()


_judged = database_sync_to_async(judged)
