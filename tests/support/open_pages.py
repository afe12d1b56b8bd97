"""Open pages as browsers have them, many at once: a websocket that subscribes as its page says, and shows what comes.

A page reads, and says after each region that it is ready for the next; or it is slow: it says so once, and then takes
nothing off its socket. None fetches: `told` counts how often one was told to.
"""

from __future__ import annotations

import asyncio
import gzip
import html
import json
import re
import socket
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect

from tests.support.browser import Site

READY = json.dumps({"type": "ready"})
SUBSCRIBED_WITHIN_S = 60.0


@dataclass(eq=False)
class OpenPage:
    """One page of one person. `shown_at_s`: when it first showed each lag that is looked for."""

    site: Site
    session: str
    subscribe: str
    wanted: set[int]
    is_slow: bool = False
    shown_at_s: dict[int, float] = field(default_factory=dict)
    regions: int = 0
    told: int = 0
    _socket: ClientConnection | None = None
    _reading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        more = {"sock": small_socket(self.site), "max_queue": 1} if self.is_slow else {}
        self._socket = await connect(
            f"ws://127.0.0.1:{self.site.port}/ws/",
            additional_headers={"Cookie": f"mqadmin_session={self.session}"},
            origin=self.site.url,  # type: ignore[arg-type]  # a NewType of str
            close_timeout=0.1,
            compression=None,
            open_timeout=SUBSCRIBED_WITHIN_S,
            **more,  # type: ignore[arg-type]
        )
        await self._socket.send(self.subscribe)
        async with asyncio.timeout(SUBSCRIBED_WITHIN_S):
            assert json.loads(await self._socket.recv())["type"] == "subscribed"
        await self._socket.send(READY)
        if self.is_slow:
            self._socket.transport.pause_reading()
        else:
            self._reading = asyncio.create_task(self._read_on(self._socket))

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        if self._socket is not None:
            self._socket.transport.abort()

    async def _read_on(self, opened: ClientConnection) -> None:
        async for frame in opened:
            if isinstance(frame, str):
                self.told += json.loads(frame)["type"] == "changed"
                continue
            self.regions += 1
            shown = _lags_in(frame, self.wanted)
            for lag in shown - self.shown_at_s.keys():
                self.shown_at_s[lag] = time.monotonic()
            await opened.send(READY)


# The latest frame and what is in it: those of one page are alike, and unpacking is the browsers' work.
_unpacked: dict[bytes, set[int]] = {}


def _lags_in(frame: bytes, wanted: set[int]) -> set[int]:
    if frame not in _unpacked:
        if len(_unpacked) > 100:
            _unpacked.clear()
        text = gzip.decompress(frame).decode()
        _unpacked[frame] = {lag for lag in wanted if f">{lag:,}<" in text}
    return _unpacked[frame]


def subscribe_of(site: Site, session: str, path: str) -> str:
    """Returns the message with which the page of this address subscribes."""
    request = urllib.request.Request(f"{site.url}{path}", headers={"Cookie": f"mqadmin_session={session}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        found = re.search(r'data-subscribe="([^"]*)"', answer.read().decode())
    assert found is not None, path
    return html.unescape(found[1])


async def until_shown(pages: Sequence[OpenPage], lag: int, within_s: float = 120) -> None:
    """Returns when all of these pages show the lag."""
    async with asyncio.timeout(within_s):
        while any(lag not in page.shown_at_s for page in pages):  # noqa: ASYNC110 - what pages show
            await asyncio.sleep(0.02)


def counts_of(site: Site) -> dict[str, int]:
    """Returns what a site that runs `counted_web` has counted."""
    with urllib.request.urlopen(f"{site.url}/bench", timeout=60) as answer:
        return dict(json.load(answer))


def small_socket(site: Site) -> socket.socket:
    """Returns a connection whose receive buffer is as small as the system has it."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    raw.connect(("127.0.0.1", site.port))
    raw.setblocking(False)
    return raw
