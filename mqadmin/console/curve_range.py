"""Which stretch of time a page of curves shows: how long it is, and when it ends. Pure.

The address says it: `?range=1h` ends now, with `&until=2026-11-23T02:45:00Z` at that moment, so that a link leads to
what was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from mqadmin.lag.retention import KEPT_FOR_S, within_window

# Key in the address → how long. The last is all that the hot window has.
RANGES: Mapping[str, timedelta] = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "48h": timedelta(hours=48),
}
DEFAULT_RANGE = "1h"
# Moments named below a curve, its two ends among them.
TICKS = 5


@dataclass(frozen=True, slots=True)
class CurveRange:
    """`until` None: it ends now and goes along with the time. `queue`: the key of the one queue shown, or ""."""

    key: str = DEFAULT_RANGE
    until: datetime | None = None
    queue: str = ""

    @property
    def length(self) -> timedelta:
        return RANGES[self.key]

    def ends(self, now: datetime) -> tuple[datetime, datetime]:
        """Returns where it begins and where it ends: within the hot window, never later than `now`."""
        until = now if self.until is None else within_window(self.until, now)
        return until - self.length, until

    def earlier(self, now: datetime) -> CurveRange | None:
        """Returns the range just before; None where the hot window has nothing of it."""
        since, _ = self.ends(now)
        return None if since <= now - timedelta(seconds=KEPT_FOR_S) else self._moved(since)

    def later(self, now: datetime) -> CurveRange | None:
        """Returns the range just after, the one that ends now where that is all there is; None if this one does."""
        if self.until is None or self.until >= now:
            return None
        until = self.until + self.length
        return self._moved(None if until >= now else until)

    def zoomed(self, middle: datetime, now: datetime) -> CurveRange | None:
        """Returns the next shorter range around a moment; None where this is the shortest."""
        keys = list(RANGES)
        position = keys.index(self.key)
        if position == 0:
            return None
        key = keys[position - 1]
        until = middle + RANGES[key] / 2
        return CurveRange(key, None if until >= now else until, self.queue)

    def as_long_as(self, key: str) -> CurveRange:
        return CurveRange(key, self.until, self.queue)

    def of_queue(self, queue: str) -> CurveRange:
        return CurveRange(self.key, self.until, queue)

    @property
    def address(self) -> str:
        """Returns the query string that names it, with its question mark."""
        values = {"range": self.key}
        if self.until is not None:
            values["until"] = f"{self.until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        if self.queue:
            values["queue"] = self.queue
        return "?" + urlencode(values)

    def ticks(self, now: datetime) -> list[str]:
        """Returns the words below the curve, in UTC, from its beginning to its end; with the day where it is long."""
        since, until = self.ends(now)
        day = "%m-%d " if self.length > timedelta(hours=6) else ""
        step = (until - since) / (TICKS - 1)
        return [f"{since + step * number:{day}%H:%M}" for number in range(TICKS)]

    def _moved(self, until: datetime | None) -> CurveRange:
        return CurveRange(self.key, until, self.queue)


def read_range(asked: Mapping[str, str]) -> CurveRange:
    """Returns the range that an address names; what can't be read counts as not said."""
    key = asked.get("range", "")
    return CurveRange(key if key in RANGES else DEFAULT_RANGE, _moment(asked.get("until", "")), asked.get("queue", ""))


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
