"""The tables of groups in reports: each column once, with its title and what it says of a row.

A day and a period share the columns that both have. None is a figure that is not known, and becomes a dash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.template.defaultfilters import floatformat
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from mqadmin.console.figures import SECOND_MS, count_text, duration_text, lateness_text
from mqadmin.reports.models import GroupDay
from mqadmin.reports.period_figures import GroupPeriod


@dataclass(frozen=True, slots=True)
class Column:
    """`field` of a row, as `write` has it; None stays None."""

    title: str | Promise
    field: str
    write: Callable[[Any], str]

    def of(self, row: GroupDay | GroupPeriod) -> str | None:
        value = getattr(row, self.field)
        return None if value is None else self.write(value)


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A row: a group, the day on which it is looked at, and its figures below the titles."""

    group_name: str
    day: date
    figures: Sequence[str | None]


@dataclass(frozen=True, slots=True)
class GroupTable:
    """Groups in their order."""

    titles: Sequence[str]
    lines: Sequence[GroupLine]


def day_table(rows: Iterable[GroupDay], day: date) -> GroupTable:
    return GroupTable(_titles(_DAY), [GroupLine(row.group_name, day, _figures(_DAY, row)) for row in rows])


def period_table(rows: Iterable[GroupPeriod], worst_days: Mapping[str, date]) -> GroupTable:
    """`worst_days`: of each group, which its row leads to."""
    lines = []
    for row in rows:
        day = worst_days[row.group_name]
        lines.append(GroupLine(row.group_name, day, [f"{day:%m-%d}", *_figures(_PERIOD, row)]))
    return GroupTable([gettext("worst day"), *_titles(_PERIOD)], lines)


def _titles(columns: Iterable[Column]) -> list[str]:
    return [str(column.title) for column in columns]


def _figures(columns: Iterable[Column], row: GroupDay | GroupPeriod) -> list[str | None]:
    return [column.of(row) for column in columns]


def _time(seconds: float) -> str:
    return duration_text(round(seconds * SECOND_MS))


def _latency(seconds: float) -> str:
    return lateness_text(round(seconds * SECOND_MS))


_OVER = Column(gettext_lazy("over its objective"), "over_s", _time)
_LAG = Column(gettext_lazy("lag, 95 %"), "lag_p95", lambda lag: count_text(round(lag)))
_OLDEST = Column(gettext_lazy("oldest message"), "wait_max_s", _time)
_DELIVERY = Column(gettext_lazy("delivery latency, 95 %"), "delivery_p95_s", _latency)
_CAME = Column(gettext_lazy("came in"), "produced", count_text)
_CONSUMED = Column(gettext_lazy("consumed"), "consumed", count_text)
_RETRIED = Column(gettext_lazy("retried"), "retried", count_text)
_RETRY_WAIT = Column(gettext_lazy("waited in retries"), "retry_wait_s", _time)
_DEAD = Column(gettext_lazy("dead"), "dead", count_text)
_REBALANCES = Column(gettext_lazy("rebalances"), "rebalance_count", count_text)
_SAMPLED = Column(gettext_lazy("sampled"), "known_s", _time)


@dataclass(frozen=True, slots=True)
class _Drains(Column):
    """Without any consumption what waits is never drained: that is known."""

    def of(self, row: GroupDay | GroupPeriod) -> str | None:
        return Column.of(self, row) or gettext("never")


_DAY = (
    _OVER,
    Column(gettext_lazy("a week before"), "over_s_before", _time),
    Column(gettext_lazy("worst hour"), "worst_hour", lambda hour: f"{hour}:00"),
    _LAG,
    Column(gettext_lazy("most"), "lag_max", count_text),
    Column(gettext_lazy("at the end"), "lag_last", count_text),
    _Drains(gettext_lazy("drains in"), "drain_s", _time),
    _OLDEST,
    _DELIVERY,
    _CAME,
    Column(gettext_lazy("growth"), "growth", lambda growth: f"× {floatformat(growth, '-2g')}"),
    _CONSUMED,
    _RETRIED,
    _RETRY_WAIT,
    _DEAD,
    _REBALANCES,
    _SAMPLED,
)
_PERIOD = (
    _OVER,
    Column(gettext_lazy("the period before"), "over_s_before", _time),
    _LAG,
    _OLDEST,
    _DELIVERY,
    _CAME,
    Column(pgettext_lazy("a period", "before"), "produced_before", count_text),
    _CONSUMED,
    _RETRIED,
    _RETRY_WAIT,
    _DEAD,
    Column(pgettext_lazy("a period", "before"), "dead_before", count_text),
    _REBALANCES,
    _SAMPLED,
)
