"""What `bench live` holds a web process to, counted: the figures that a busy machine cannot change. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

# As mqadmin/live has them, which needs the settings of an install.
PUSH_INTERVAL_S = 0.5
REGION_BYTES_MAX = 256 * 1024
VIEWERS_PER_QUERY = 500
HEARTBEAT_S = 10.0
# Who looks (7), the request that is answered (session, account, rights), and what the page shows.
QUERIES_PER_RENDERING_MAX = 40
# What changes while a region is rendered is rendered once more.
RENDERINGS_PER_ADDRESS_MAX = 2
QUERIES_PER_CHECK = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Counts of one section: `queries`, `renderings`, `requests` of all `changes`, which took `seconds`.

    `page_count` pages are open at `address_count` addresses; `regions_max` is what the page got that got most, `told`
    how often one was told to fetch, `unread_bytes` what lay in the process for the slowest socket. `idle_queries` were
    asked while nothing happened, in `idle_s`.
    """

    page_count: int
    address_count: int
    changes: int
    seconds: float
    queries: int
    renderings: int
    requests: int
    regions_max: int
    told: int
    unread_bytes: int
    idle_queries: int
    idle_s: float

    @property
    def queries_per_check(self) -> int:
        return QUERIES_PER_CHECK * math.ceil(self.page_count / VIEWERS_PER_QUERY)

    def checks_in(self, seconds: float) -> int:
        return 1 + math.floor(seconds / HEARTBEAT_S)


# What is held to, each with its figure and the most that it may be.
_BARS: dict[str, Callable[[Measured], tuple[float, float]]] = {
    "renderings": lambda one: (one.renderings, RENDERINGS_PER_ADDRESS_MAX * one.address_count * one.changes),
    "queries": lambda one: (
        one.queries,
        QUERIES_PER_RENDERING_MAX * one.renderings + one.queries_per_check * one.checks_in(one.seconds),
    ),
    "requests": lambda one: (one.requests, 0),
    "regions that one page got": lambda one: (one.regions_max, 1 + math.floor(one.seconds / PUSH_INTERVAL_S)),
    "times that a page was told to fetch": lambda one: (one.told, 0),
    "bytes that lie unread": lambda one: (one.unread_bytes, REGION_BYTES_MAX),
    "queries of idle pages": lambda one: (one.idle_queries, one.queries_per_check * one.checks_in(one.idle_s)),
}


def broken(measured: Measured) -> list[str]:
    """Returns the bars that do not hold, in words."""
    judged = ((name, *bar(measured)) for name, bar in _BARS.items())
    return [f"{name}: {value:g}, at most {most:g}" for name, value, most in judged if value > most]
