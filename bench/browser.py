"""What reaches an open page of a real browser: a group's lag and verdict, a rebalance, an alert that fires or resolves.

The console runs as it does in an install, in a process of its own, with Redis and SQLite, beside a Chromium with one
page. A time counts from before the change is written until the page's document has it, without a reload. Ends with 1
where one takes longer than the bar.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.support.browser import PASSWORD, Site, chromium_path, log_in

CHANGES = 20
BAR_S = 2.0
PAUSE_S = 1.0
GROUP_PAGE = "/clusters/local/groups/billing/"

SHOWS = "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)"


@dataclass(frozen=True, slots=True)
class Change:
    """A step of the console's story, and the text that the element at `selector` has after it."""

    step: str
    arguments: dict[str, object]
    selector: str
    text: str


def lags() -> Iterator[Change]:
    for lag in range(100, 100 + CHANGES):
        arguments: dict[str, object] = {"group": "billing", "lag": lag}
        yield Change("lag_becomes", arguments, "#figures [data-cell=lag]", str(lag))


def verdicts() -> Iterator[Change]:
    for number in range(CHANGES):
        word = ("slow", "ok")[number % 2]
        arguments: dict[str, object] = {"group": "billing", "lag": 200, "verdict": word}
        yield Change("lag_becomes", arguments, ".page-head .status", word.upper())


def rebalances() -> Iterator[Change]:
    for number in range(CHANGES):
        arguments: dict[str, object] = {"group": "billing", "client_id": f"10.0.3.9@{8_800 + number}"}
        yield Change("member_joins", arguments, "#page", f"10.0.3.9@{8_800 + number} joined")


def alerts() -> Iterator[Change]:
    for number in range(CHANGES):
        step, text = (("group_stalls", "1 alert fires"), ("group_is_well", "Nothing fires"))[number % 2]
        yield Change(step, {"group": "billing"}, "#page", text)


# By what changes: the page that is open, and its changes.
KINDS: dict[str, tuple[str, Callable[[], Iterator[Change]]]] = {
    "lag": (GROUP_PAGE, lags),
    "verdict": (GROUP_PAGE, verdicts),
    "rebalance": ("/clusters/local/rebalances/", rebalances),
    "alert": ("/alerts/", alerts),
}


def main() -> None:
    path = chromium_path()
    if path is None:
        sys.exit("no Chromium: Debian: apt install chromium-headless-shell")
    with tempfile.TemporaryDirectory(prefix="bench-") as made, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        # Where `Site` makes an empty database once.
        os.environ.setdefault("MQADMIN_DATA", made)
        with Site(Path(folder)) as site, sync_playwright() as playwright:
            site.carry_out("admin", password=PASSWORD)
            site.carry_out("shop")
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            page = browser.new_context(base_url=site.url).new_page()
            page.goto("/")
            log_in(page)
            most_s = max(_shown(site, page, kind) for kind in KINDS)
            browser.close()
    if most_s > BAR_S:
        print(f"BROKEN: {most_s:.2f} s, at most {BAR_S:g} s")
        sys.exit(1)


def _shown(site: Site, page: Page, kind: str) -> float:
    """Makes the changes of `kind` and prints how long they took to be shown; returns the longest, in seconds."""
    path, changes = KINDS[kind]
    page.goto(path)
    page.wait_for_selector("#live-state[data-state=live]", state="attached")
    page.evaluate("window.notReloaded = true")
    took_s = []
    for change in changes():
        at_s = time.monotonic()
        site.carry_out(change.step, **change.arguments)
        page.wait_for_function(SHOWS, arg=[change.selector, change.text], timeout=60_000)
        took_s.append(time.monotonic() - at_s)
        time.sleep(PAUSE_S)
    assert page.evaluate("window.notReloaded === true")
    took_s.sort()
    p50, p95, most = (f"{took_s[int((len(took_s) - 1) * share)]:.2f} s" for share in (0.5, 0.95, 1))
    print(f"{kind:10} {len(took_s)} changes: shown after {p50} (p50), {p95} (p95), {most} (most)", flush=True)
    return took_s[-1]


if __name__ == "__main__":
    main()
