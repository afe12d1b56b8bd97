"""Sixty pages open at once, six of which read nothing: what a change costs the web process, counted and not timed.

The long form, with 500 and with times, is `python -m bench live`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mqadmin.live.regions import REGION_BYTES_MAX
from mqadmin.supervision.redis_server import NoRedis, find_redis_server
from tests.support.browser import Site
from tests.support.open_pages import OpenPage, counts_of, subscribe_of, until_shown
from tests.support.tools import require

pytestmark = [pytest.mark.journey, pytest.mark.redis, pytest.mark.slow]

READERS = 54
SLOW = 6
LIST = "/clusters/local/groups/"
LAGS = (1_001, 1_002, 1_003)
# What a change costs one page: who looks (7), their request (session, account, rights), and the list itself.
QUERIES_MAX = 40


@pytest.fixture
def counted(tmp_path: Path) -> Site:
    try:
        find_redis_server()
    except NoRedis as error:
        require(None, str(error))
    return Site(tmp_path, application="tests.support.counted_web:application")


def test_a_change_is_rendered_once_for_all_who_read_and_the_slow_cost_nothing(counted: Site) -> None:
    with counted as site:
        site.carry_out("shop")
        asyncio.run(_watched(site, site.carry_out("sessions", count=READERS + SLOW)))


async def _watched(site: Site, sessions: list[str]) -> None:
    message = await asyncio.to_thread(subscribe_of, site, sessions[0], LIST)
    pages = [
        OpenPage(site, session, message, set(LAGS), is_slow=number >= READERS)
        for number, session in enumerate(sessions)
    ]
    for page in pages:
        await page.open()
    for lag in LAGS:
        before = counts_of(site)
        await asyncio.to_thread(site.carry_out, "lags_become", lag=lag)
        await until_shown(pages[:READERS], lag)
        after = counts_of(site)
        changed = {name: after[name] - before[name] for name in ("queries", "renderings", "requests")}
        # The heartbeat may check the viewers meanwhile, and what came while it was rendered is rendered once more.
        assert 1 <= changed["renderings"] <= 2
        assert changed["queries"] <= QUERIES_MAX * changed["renderings"] + 2
        assert changed["requests"] == 0
        assert after["unread"] <= REGION_BYTES_MAX
    assert {page.told for page in pages} == {0}
    for page in pages:
        await page.close()
