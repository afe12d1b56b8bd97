"""Open pages: 450 that read and 50 that take nothing, on the page of one group, while its lag changes.

The console runs as it does in an install, in a process of its own, with Redis and SQLite. A viewer is a websocket and,
as live.js does, a request for the page's region when the socket says that something changed, at most one a second. Each
viewer has a session of its own. "Shown" is when a viewer has the region with the new figure; it counts from before the
change is written. Besides: what idle pages cost, and scripts on `/ws/events` that read nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import time
import urllib.request
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.support.browser import Site

VIEWERS = 450
SLOW = 50
CHANGES = 5
IDLE_S = 10.0
SCRIPTS = 20
SCRIPT_EVENTS = 15_000
SPACING_S = 1.0
PAGE = "/clusters/local/groups/billing/"
SUBSCRIBE = {"type": "subscribe", "subscriptions": [{"cluster": "local", "group": "billing"}]}


@dataclass
class Viewer:
    """An open page: its socket, its connection for requests, and when it has shown which lag."""

    site: Site
    session: str
    shown_at_s: dict[int, float] = field(default_factory=dict)
    frame_count: int = 0
    fetched_at_s: float = 0.0

    async def run(self, opened: ClientConnection, expected: set[int]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.site.port)
        changed = asyncio.Event()
        fetching = asyncio.create_task(self._fetch_on(reader, writer, changed, expected))
        try:
            async for text in opened:
                self.frame_count += 1
                if json.loads(text)["type"] == "changed":
                    changed.set()
        finally:
            fetching.cancel()
            writer.close()

    async def _fetch_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, changed: asyncio.Event, expected: set[int]
    ) -> None:
        while True:
            await changed.wait()
            await asyncio.sleep(max(0.0, self.fetched_at_s + SPACING_S - time.monotonic()))
            changed.clear()
            self.fetched_at_s = time.monotonic()
            text = await self._fetch(reader, writer)
            for lag in expected - self.shown_at_s.keys():
                if f">{lag:,}<" in text:
                    self.shown_at_s[lag] = time.monotonic()

    async def _fetch(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        head = f"GET {PAGE} HTTP/1.1\r\nHost: 127.0.0.1:{self.site.port}\r\nCookie: mqadmin_session={self.session}\r\n"
        writer.write(f"{head}HX-Request: true\r\n\r\n".encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert answer.startswith("http/1.1 200"), answer
        length = int(answer.split("content-length:")[1].split("\r\n")[0])
        return (await reader.readexactly(length)).decode()


def main() -> None:
    viewers, slow = (int(word) for word in (*sys.argv[2:4], VIEWERS, SLOW)[:2])
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        # Where `Site` makes an empty database once.
        os.environ.setdefault("MQADMIN_DATA", f"{folder}/made")
        with Site(_made(Path(folder) / "site"), application="bench.counted_web:application") as site:
            asyncio.run(_measure(site, viewers, slow))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def _measure(site: Site, viewers: int, slow: int) -> None:
    site.carry_out("admin", password="let-me-in-please")  # noqa: S106 - of a console of its own
    site.carry_out("shop")
    sessions = site.carry_out("sessions", count=viewers + slow)
    print(
        f"{viewers} pages that read, {slow} that take nothing; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    site.carry_out("lag_becomes", group="billing", lag=1)
    for _ in range(3):
        await Viewer(site, sessions[0])._fetch(*await asyncio.open_connection("127.0.0.1", site.port))
    before = _counts(site)
    expected: set[int] = set()
    async with AsyncExitStack() as stack:
        pages = [Viewer(site, session) for session in sessions]
        opened = [
            await stack.enter_async_context(await _open(site, page, is_slow=n >= viewers))
            for n, page in enumerate(pages)
        ]
        reading = [
            asyncio.create_task(page.run(one, expected)) for page, one in zip(pages[:viewers], opened, strict=False)
        ]
        idle = _counts(site)
        await asyncio.sleep(IDLE_S)
        after_idle = _counts(site)
        _say("memory before, open", _mb(before), _mb(idle), "MB")
        _say(f"queries of all idle pages in {IDLE_S:.0f} s", after_idle["queries"] - idle["queries"])
        latencies = []
        began = _counts(site)
        for number in range(CHANGES):
            lag = 1_000 + number
            expected.add(lag)
            at_s = time.monotonic()
            await asyncio.to_thread(site.carry_out, "lag_becomes", group="billing", lag=lag)
            await _until_shown(pages[:viewers], lag)
            latencies += [page.shown_at_s[lag] - at_s for page in pages[:viewers]]
        ended = _counts(site)
        frames = sum(page.frame_count for page in pages)
        for task in reading:
            task.cancel()
    per_change = {name: (ended[name] - began[name]) / CHANGES for name in ("queries", "requests")}
    _say("frames in all", frames)
    for name, value in per_change.items():
        _say(f"{name} a change", f"{value:.1f}")
    latencies.sort()
    _say(
        "applied to shown, p50, p95, most",
        *(f"{latencies[int(len(latencies) * share)]:.2f}" for share in (0.5, 0.95, 0.999)),
        "s",
    )
    _say("memory after", _mb(ended), "MB")
    await _scripts(site)
    print(f"load at the end {os.getloadavg()[0]:.1f}")


async def _scripts(site: Site) -> None:
    """Scripts that take nothing while much happens: the process keeps 2,000 events for all of them."""
    site.carry_out("token", secret="mqa_bench")  # noqa: S106 - as above
    before = _counts(site)
    headers = {"Authorization": "Bearer mqa_bench"}
    async with AsyncExitStack() as stack:
        for _ in range(SCRIPTS):
            address = f"ws://127.0.0.1:{site.port}/ws/events"
            one = await stack.enter_async_context(
                connect(address, sock=_small_socket(site), additional_headers=headers, max_queue=1, close_timeout=0.1)
            )
            await one.send(json.dumps({"type": "subscribe"}))
            await one.recv()
        await asyncio.to_thread(site.carry_out, "verdicts_turn", count=SCRIPT_EVENTS, filler="x" * 1_000)
        after = _counts(site)
    _say(
        f"memory before and after {SCRIPT_EVENTS:,} events of 1 KB for {SCRIPTS} scripts that read nothing",
        _mb(before),
        _mb(after),
        "MB",
    )


async def _open(site: Site, page: Viewer, *, is_slow: bool) -> Any:
    headers = {"Cookie": f"mqadmin_session={page.session}"}
    more: dict[str, Any] = {"sock": _small_socket(site), "max_queue": 1} if is_slow else {}
    opening = connect(
        f"ws://127.0.0.1:{site.port}/ws/", additional_headers=headers, origin=site.url, close_timeout=0.1, **more
    )
    opened = await opening
    await opened.send(json.dumps(SUBSCRIBE))
    assert json.loads(await opened.recv())["type"] == "subscribed"
    return _Opened(opened)


class _Opened:
    """A connection that is open already, as a context."""

    def __init__(self, opened: ClientConnection) -> None:
        self._opened = opened

    async def __aenter__(self) -> ClientConnection:
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        await self._opened.close()


def _small_socket(site: Site) -> socket.socket:
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    raw.connect(("127.0.0.1", site.port))
    return raw


async def _until_shown(pages: list[Viewer], lag: int) -> None:
    async with asyncio.timeout(120):
        while any(lag not in page.shown_at_s for page in pages):  # noqa: ASYNC110 - what viewers have seen
            await asyncio.sleep(0.02)


def _counts(site: Site) -> dict[str, int]:
    with urllib.request.urlopen(f"{site.url}/bench", timeout=60) as answer:  # noqa: S310 - of this process
        return {"queries": 0, "requests": 0, **json.load(answer)}


def _mb(counts: dict[str, int]) -> str:
    return f"{counts['rss'] / 2**20:.0f}"


def _say(what: str, *values: object) -> None:
    print(f"  {what}: {' '.join(str(value) for value in values)}", flush=True)


if __name__ == "__main__":
    main()
