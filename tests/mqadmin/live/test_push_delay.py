"""From a change to its region under way: what the console itself adds to the rendering, on a clock that is a number.

On virtual time a rendering takes as long as the test says, and no busy machine can lengthen anything: what remains are
the pauses of the product. So 2 seconds hold as long as a region is rendered in 0.7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqadmin.live import pushes
from mqadmin.live.pushes import GATHER_S, PUSH_INTERVAL_S, Pushes
from mqadmin.live.regions import PageAddress
from mqadmin.live.viewers import Judged, Viewer
from mqadmin.people.rights import Rights
from tests.support.virtual_time import VirtualLoop, VirtualTime

WITHIN_S = 2.0
ADDRESS = PageAddress("/clusters/local/groups/", "en")


class Console:
    """What pages show: a count of changes so far. A region has what was so when its rendering began."""

    def __init__(self, render_s: float) -> None:
        self.changes = 0
        self.rendered_count = 0
        self._render_s = render_s

    async def rendered(self, *_: Any) -> bytes:
        shown = self.changes
        self.rendered_count += 1
        await asyncio.sleep(self._render_s)
        return str(shown).encode()


class OpenPage:
    """A page that is ready as soon as it has shown what it got; `shown_at_s`: when it had each change."""

    viewer = Viewer("session", 1, "hash")
    address = ADDRESS
    cluster_ids: frozenset[int] = frozenset()

    def __init__(self, served: Pushes) -> None:
        self.scope: dict[str, Any] = {}
        self.shown_at_s: list[float] = []
        self._is_stale = False
        self._pushes = served

    @property
    def wants_region(self) -> bool:
        return self._is_stale

    def change(self) -> None:
        self._is_stale = True
        self._pushes.wake(self.address)

    def begin_region(self) -> None:
        self._is_stale = False

    def push_soon(self, frame: bytes, digest: bytes) -> None:
        now_s = asyncio.get_running_loop().time()
        self.shown_at_s += [now_s] * (int(frame) - len(self.shown_at_s))

    def fetch_soon(self) -> None:
        raise AssertionError("everything can be pushed")

    def close_soon(self, code: int) -> None:
        raise AssertionError(code)


async def _everybody_may(viewers: Collection[Viewer]) -> dict[Viewer, Judged]:
    return {viewer: Judged(Rights("all", None)) for viewer in viewers}


def delays_of(pauses_s: Sequence[float], render_s: float) -> tuple[list[float], int]:
    """Returns how long after each change its region was under way, and how many were rendered."""
    console, changed_at_s = Console(render_s), []

    async def carry_out() -> OpenPage:
        served = Pushes()
        served._regions = console  # type: ignore[assignment]
        page = OpenPage(served)
        served.add(page)
        for pause_s in pauses_s:
            await asyncio.sleep(pause_s)
            console.changes += 1
            changed_at_s.append(asyncio.get_running_loop().time())
            page.change()
        await asyncio.sleep(10 * WITHIN_S)
        served.remove(page)
        return page

    loop = VirtualLoop(VirtualTime())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pushes, "_judged", _everybody_may)
        page = loop.run(carry_out())
        loop.settle()
    loop.close()
    assert len(page.shown_at_s) == len(pauses_s)
    delays = [shown_s - at_s for shown_s, at_s in zip(page.shown_at_s, changed_at_s, strict=True)]
    return delays, console.rendered_count


def test_first_change_waits_for_nothing_but_what_comes_with_it() -> None:
    assert delays_of([1.0], render_s=0.1)[0] == pytest.approx([GATHER_S + 0.1])


def test_what_changes_while_a_region_is_rendered_comes_with_the_next_one() -> None:
    (_, second), count = delays_of([1.0, GATHER_S + 0.05], render_s=0.1)
    assert second == pytest.approx(0.05 + PUSH_INTERVAL_S + GATHER_S + 0.1)
    assert count == 2


@given(
    pauses_s=st.lists(st.floats(0, 3, allow_subnormal=False), min_size=1, max_size=40), render_s=st.floats(0.001, 0.7)
)
def test_every_change_is_under_way_within_two_seconds_however_they_come(pauses_s: list[float], render_s: float) -> None:
    delays, count = delays_of(pauses_s, render_s)
    assert max(delays) <= 2 * render_s + PUSH_INTERVAL_S + GATHER_S + 1e-6 <= WITHIN_S
    assert count <= sum(pauses_s) / PUSH_INTERVAL_S + 2, "at most two a second"
