"""Whether an alert is silenced at a moment. Pure.

A silence is one stretch of time, or a window that comes every week by the clock of a time zone. A clock that is put
forward or back takes the window with it: 02:00 to 04:00 is an hour in the night in which the clock goes forward, three
in the one in which it goes back, and 02:15 to 02:45 is not at all where 02:00 is followed by 03:00.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from mqadmin.alerts.conditions import matches

MINUTES_OF_DAY = 24 * 60
DAYS_OF_WEEK = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """`weekdays` (0: Monday) empty: once, from `starts_at` until `ends_at`; else weekly, by minutes of the day.

    A window whose end is not after its begin ends on the next day and belongs to the day on which it begins. It holds
    between `starts_at` and `ends_at`, too; None: for ever.
    """

    cluster: str
    names: str = "*"
    rules: str = "*"
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    weekdays: frozenset[int] = frozenset()
    from_minute: int = 0
    to_minute: int = 0
    zone: str = "UTC"

    def is_quiet(self, at: datetime) -> bool:
        """Tells whether it holds at a moment, whatever it is about."""
        if (self.starts_at is not None and at < self.starts_at) or (self.ends_at is not None and at >= self.ends_at):
            return False
        return not self.weekdays or self._is_in_window(at)

    def _is_in_window(self, at: datetime) -> bool:
        local = at.astimezone(ZoneInfo(self.zone))
        minute, day = local.hour * 60 + local.minute, local.weekday()
        if self.from_minute < self.to_minute:
            return day in self.weekdays and self.from_minute <= minute < self.to_minute
        began_yesterday = (day - 1) % DAYS_OF_WEEK in self.weekdays and minute < self.to_minute
        return began_yesterday or (day in self.weekdays and minute >= self.from_minute)


def silenced(silences: Iterable[Silence], cluster: str, name: str, rule: str, at: datetime) -> bool:
    """Tells whether one of the silences holds for an alert of this rule about this thing."""
    return any(
        one.cluster == cluster and one.is_quiet(at) and matches(one.names, name) and matches(one.rules, rule)
        for one in silences
    )
