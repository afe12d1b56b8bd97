"""The bars of `bench live`: as wide as the product's own limits, and what breaks one is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench import live_bars
from bench.live_bars import Measured, broken
from mqadmin.live import heartbeats, pushes, regions, viewers

# As a run with 500 pages of 20 groups found it.
FOUND = Measured(
    page_count=500,
    address_count=20,
    changes=5,
    seconds=12.0,
    queries=2_025,
    renderings=100,
    requests=0,
    regions_max=5,
    told=0,
    unread_bytes=0,
    idle_queries=2,
    idle_s=10.0,
)


def test_limits_are_those_of_the_product() -> None:
    assert live_bars.PUSH_INTERVAL_S == pushes.PUSH_INTERVAL_S
    assert live_bars.REGION_BYTES_MAX == regions.REGION_BYTES_MAX
    assert live_bars.VIEWERS_PER_QUERY == viewers.VIEWERS_PER_QUERY
    assert live_bars.HEARTBEAT_S == heartbeats.HEARTBEAT_S


def test_what_a_run_found_breaks_nothing() -> None:
    assert broken(FOUND) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"renderings": 201, "queries": 2_500}, "renderings: 201, at most 200"),
        ({"queries": 450 * 7 + 2_025}, "queries: 5175, at most 4004"),
        ({"requests": 1}, "requests: 1, at most 0"),
        ({"regions_max": 26}, "regions that one page got: 26, at most 25"),
        ({"told": 3}, "times that a page was told to fetch: 3, at most 0"),
        ({"unread_bytes": 256 * 1024 + 1}, "bytes that lie unread"),
        ({"idle_queries": 5}, "queries of idle pages: 5, at most 4"),
    ],
    ids=["renderings", "queries that grow with pages", "requests", "frames", "fetches", "a buffer", "idle pages"],
)
def test_bar_that_is_broken_is_named(changed: dict[str, int], words: str) -> None:
    (found,) = broken(replace(FOUND, **changed))
    assert found.startswith(words)
