"""Days, weeks and months as addresses name them: 2026-11-22, 2026-W47, 2026-11. Pure; days are those of UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

_WEEK = re.compile(r"(\d{4})-W(\d{2})")
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_DAY = timedelta(days=1)


class PeriodKind(StrEnum):
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Period:
    """A week from Monday, or a month. `since` and `until` are its first and last day."""

    kind: PeriodKind
    since: date
    until: date

    @property
    def key(self) -> str:
        """Names it as in an address."""
        if self.kind == PeriodKind.MONTH:
            return f"{self.since:%Y-%m}"
        year, week, _day = self.since.isocalendar()
        return f"{year}-W{week:02}"

    @property
    def days(self) -> list[date]:
        return [self.since + number * _DAY for number in range((self.until - self.since).days + 1)]

    @property
    def before(self) -> Period:
        """Returns the one before it."""
        return (month_of if self.kind == PeriodKind.MONTH else week_of)(self.since - _DAY)

    @property
    def after(self) -> Period:
        """Returns the one after it."""
        return (month_of if self.kind == PeriodKind.MONTH else week_of)(self.until + _DAY)


def day_bounds(day: date) -> tuple[datetime, datetime]:
    """Returns when a day (UTC) begins and ends."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return begin, begin + _DAY


def week_of(day: date) -> Period:
    monday = day - timedelta(days=day.weekday())
    return Period(PeriodKind.WEEK, monday, monday + timedelta(days=6))


def month_of(day: date) -> Period:
    first = day.replace(day=1)
    return Period(PeriodKind.MONTH, first, (first + timedelta(days=31)).replace(day=1) - _DAY)


def read_period(text: str) -> Period:
    """Reads a week or a month. Raises ValueError for anything else."""
    if found := _WEEK.fullmatch(text):
        return week_of(date.fromisocalendar(int(found[1]), int(found[2]), 1))
    if found := _MONTH.fullmatch(text):
        return month_of(date(int(found[1]), int(found[2]), 1))
    raise ValueError(f"{text} is no week and no month: it must be as in 2026-W47 or 2026-11")
