"""Open pages: 450 that read and 50 that take nothing, on one list of groups and on the pages of 20 groups.

The console runs as it does in an install, in a process of its own, with Redis and SQLite. Each page is a websocket of a
person of its own. "Shown" is when a page has the region with the new figure; it counts from before the change is
written. Besides: what idle pages cost, and scripts on `/ws/events` that read nothing. Ends with 1 where what is counted
breaks a bar of `live_bars.py`; seconds and memory are told, not judged.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from itertools import cycle, islice
from pathlib import Path

from websockets.asyncio.client import connect

from bench.live_bars import Measured, broken
from tests.support.browser import Site
from tests.support.open_pages import OpenPage, counts_of, small_socket, subscribe_of, until_shown

READERS = 450
SLOW = 50
CHANGES = 5
IDLE_S = 10.0
GROUPS = 20
SCRIPTS = 20
SCRIPT_EVENTS = 15_000
LIST = ["/clusters/local/groups/"]
GROUP_PAGES = [f"/clusters/local/groups/shop-{number:02}/" for number in range(GROUPS)]


def main() -> None:
    readers, slow = (int(word) for word in (*sys.argv[2:4], READERS, SLOW)[:2])
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        # Where `Site` makes an empty database once.
        os.environ.setdefault("MQADMIN_DATA", f"{folder}/made")
        with Site(_made(Path(folder) / "site"), application="tests.support.counted_web:application") as site:
            found = asyncio.run(_measure(site, readers, slow))
    for bar in found:
        print(f"BROKEN: {bar}")
    if found:
        sys.exit(1)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def _measure(site: Site, readers: int, slow: int) -> list[str]:
    """Returns the bars that are broken."""
    site.carry_out("admin", password="let-me-in-please")  # noqa: S106 - of a console of its own
    site.carry_out("shop")
    site.carry_out("groups", count=GROUPS)
    sessions = site.carry_out("sessions", count=readers + slow)
    print(
        f"{readers} pages that read, {slow} that take nothing; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    sections = (("the list of groups", LIST, 1_000), (f"the pages of {GROUPS} groups", GROUP_PAGES, 2_000))
    found = []
    for what, paths, first_lag in sections:
        measured = await _pushed(site, what, paths, sessions, readers, first_lag=first_lag)
        found += [f"{what}: {bar}" for bar in broken(measured)]
    await _scripts(site)
    print(f"load at the end {os.getloadavg()[0]:.1f}")
    return found


async def _pushed(
    site: Site, what: str, paths: list[str], sessions: list[str], readers: int, *, first_lag: int
) -> Measured:
    messages = [await asyncio.to_thread(subscribe_of, site, sessions[0], path) for path in paths]
    wanted = set(range(first_lag, first_lag + CHANGES))
    before = counts_of(site)
    pages = [
        OpenPage(site, session, message, wanted, is_slow=number >= readers)
        for number, (session, message) in enumerate(zip(sessions, islice(cycle(messages), len(sessions)), strict=True))
    ]
    for page in pages:
        await page.open()
    opened = counts_of(site)
    await asyncio.sleep(IDLE_S)
    idle = counts_of(site)
    latencies: list[float] = []
    reading = pages[:readers]
    changing_s = time.monotonic()
    for lag in sorted(wanted):
        at_s = time.monotonic()
        await asyncio.to_thread(site.carry_out, "lags_become", lag=lag)
        await until_shown(reading, lag)
        latencies += [page.shown_at_s[lag] - at_s for page in reading]
        # A cycle of sampling lies between two changes.
        await asyncio.sleep(1)
    after, seconds = counts_of(site), time.monotonic() - changing_s
    print(f"on {what}")
    _say("memory before, with all open, after", *(_mb(counts) for counts in (before, opened, after)), "MB")
    _say("written to the slowest socket and not read", after["unread"], "bytes")
    _say(f"queries of all idle pages in {IDLE_S:.0f} s", idle["queries"] - opened["queries"])
    for name in ("queries", "renderings", "requests"):
        _say(f"{name} a change", f"{(after[name] - idle[name]) / CHANGES:.1f}")
    _say("regions a page; times that one was told to fetch", _mean([page.regions for page in reading]), _told(pages))
    latencies.sort()
    shares = (f"{latencies[int(len(latencies) * share)]:.2f}" for share in (0.5, 0.95, 0.999))
    _say("changed to shown, p50, p95, most", *shares, "s")
    for page in pages:
        await page.close()
    changed = {name: after[name] - idle[name] for name in ("queries", "renderings", "requests")}
    return Measured(
        page_count=len(pages),
        address_count=len(paths),
        changes=CHANGES,
        seconds=seconds,
        **changed,
        regions_max=max(page.regions for page in pages),
        told=_told(pages),
        unread_bytes=after["unread"],
        idle_queries=idle["queries"] - opened["queries"],
        idle_s=IDLE_S,
    )


async def _scripts(site: Site) -> None:
    """Scripts that take nothing while much happens: the process keeps 2,000 events for all of them."""
    site.carry_out("token", secret="mqa_bench")  # noqa: S106 - as above
    before = counts_of(site)
    headers = {"Authorization": "Bearer mqa_bench"}
    async with AsyncExitStack() as stack:
        for _ in range(SCRIPTS):
            address = f"ws://127.0.0.1:{site.port}/ws/events"
            one = await stack.enter_async_context(
                connect(address, sock=small_socket(site), additional_headers=headers, max_queue=1, close_timeout=0.1)
            )
            await one.send(json.dumps({"type": "subscribe"}))
            await one.recv()
        await asyncio.to_thread(site.carry_out, "verdicts_turn", count=SCRIPT_EVENTS, filler="x" * 1_000)
        after = counts_of(site)
    _say(
        f"memory before and after {SCRIPT_EVENTS:,} events of 1 KB for {SCRIPTS} scripts that read nothing",
        _mb(before),
        _mb(after),
        "MB",
    )


def _mean(values: list[int]) -> str:
    return f"{sum(values) / len(values):.1f}"


def _told(pages: list[OpenPage]) -> int:
    return sum(page.told for page in pages)


def _mb(counts: dict[str, int]) -> str:
    return f"{counts['rss'] / 2**20:.0f}"


def _say(what: str, *values: object) -> None:
    print(f"  {what}: {' '.join(str(value) for value in values)}", flush=True)


if __name__ == "__main__":
    main()
