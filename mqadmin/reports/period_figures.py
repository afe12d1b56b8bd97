"""A week or a month, from the reports of its days: sums of each group beside those of the period before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import Count, Max, QuerySet, Sum

from mqadmin.clusters.models import Cluster
from mqadmin.reports.models import DayReport, GroupDay
from mqadmin.reports.periods import Period
from mqadmin.reports.selectors import GROUPS_SHOWN, WORSE_FACTOR

_SUMMED = (
    "known_s",
    "over_s",
    "produced",
    "consumed",
    "retried",
    "retry_wait_s",
    "dead",
    "rebalance_count",
    "conflict_s",
)
_HIGHEST = ("lag_p95", "lag_max", "wait_max_s", "delivery_p95_s", "peak_in_s", "peak_out_s")
# Worse by less than this a day is noise.
WORSE_S_MIN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPeriod:
    """A group over the days of a period that have a report, `day_count` of them.

    `lag_p95` and `delivery_p95_s`: those of its worst day.

    `over_s_before` and so on are of the period before; null: the group was in none of its reports.
    """

    group_name: str
    day_count: int
    known_s: int
    over_s: int
    produced: int
    consumed: int
    retried: int
    retry_wait_s: int
    dead: int
    rebalance_count: int
    conflict_s: int
    lag_p95: float
    lag_max: int
    wait_max_s: float | None
    delivery_p95_s: float | None
    peak_in_s: float | None
    peak_out_s: float | None
    over_s_before: int | None = None
    produced_before: int | None = None
    dead_before: int | None = None
    day_count_before: int = 0

    @property
    def over_share(self) -> float:
        """The share of the known time that was over the objective."""
        return self.over_s / self.known_s if self.known_s else 0.0

    @property
    def got_worse(self) -> bool:
        """Tells whether it was over its objective for much longer a day than in the period before."""
        if self.over_s_before is None or not self.day_count_before:
            return False
        now_s, before_s = self.over_s / self.day_count, self.over_s_before / self.day_count_before
        return now_s > before_s * WORSE_FACTOR and now_s - before_s >= WORSE_S_MIN


@dataclass(frozen=True, slots=True)
class PeriodPage:
    """`days` and `days_before` have a report. `groups`: the worst first. `drawn`: their days, as rows of reports.

    `has_after`: a day of the period after it has a report.
    """

    period: Period
    days: Sequence[DayReport]
    days_before: Sequence[DayReport]
    groups: Sequence[GroupPeriod]
    drawn: Sequence[GroupDay]
    has_after: bool

    @property
    def shown(self) -> Sequence[GroupPeriod]:
        return self.groups[:GROUPS_SHOWN]

    def worst_days(self) -> dict[str, date]:
        """Returns the day of each group that is shown on which it was over its objective for longest."""
        # The last one wins: of days that are alike, the latest.
        ordered = sorted(self.drawn, key=lambda row: (row.over_s, row.lag_p95, row.report.day))
        return {row.group_name: row.report.day for row in ordered}

    @property
    def over_count(self) -> int:
        return sum(group.over_s > 0 for group in self.groups)

    @property
    def worse(self) -> list[GroupPeriod]:
        """Those that got worse, by how much a day."""
        found = [group for group in self.groups if group.got_worse]
        return sorted(found, key=lambda one: (one.over_s_before or 0) - one.over_s)


def group_periods(cluster: Cluster, period: Period) -> list[GroupPeriod]:
    """Returns all groups of the period's reports, the worst first, in two queries."""
    before = {row["group_name"]: row for row in _summed(cluster, period.before)}
    found = []
    for row in _summed(cluster, period):
        earlier = before.get(row["group_name"], {})
        found.append(
            GroupPeriod(
                **row,
                over_s_before=earlier.get("over_s"),
                produced_before=earlier.get("produced"),
                dead_before=earlier.get("dead"),
                day_count_before=earlier.get("day_count", 0),
            )
        )
    return sorted(found, key=lambda one: (-one.over_s, -one.lag_p95, one.group_name))


def period_page(cluster: Cluster, period: Period) -> PeriodPage:
    """Returns what the page of a period shows, in six queries. Raises DayReport.DoesNotExist without any report."""
    days = list(_reports(cluster, period))
    if not days:
        raise DayReport.DoesNotExist(f"{period.key} has no report")
    groups = group_periods(cluster, period)
    names = [group.group_name for group in groups[:GROUPS_SHOWN]]
    drawn = GroupDay.objects.filter(report__in=days, group_name__in=names).select_related("report")
    return PeriodPage(
        period=period,
        days=days,
        days_before=list(_reports(cluster, period.before)),
        groups=groups,
        drawn=list(drawn.order_by("group_name", "report__day")),
        has_after=_reports(cluster, period.after).exists(),
    )


def _reports(cluster: Cluster, period: Period) -> QuerySet[DayReport]:
    return DayReport.objects.filter(cluster=cluster, day__gte=period.since, day__lte=period.until).order_by("day")


def _summed(cluster: Cluster, period: Period) -> list[dict[str, Any]]:
    rows = GroupDay.objects.filter(
        report__cluster=cluster, report__day__gte=period.since, report__day__lte=period.until
    )
    sums: dict[str, Any] = {f"{name}_": Sum(name) for name in _SUMMED} | {f"{name}_": Max(name) for name in _HIGHEST}
    found = rows.values("group_name").annotate(day_count=Count("pk"), **sums)
    return [{name.removesuffix("_"): value for name, value in row.items()} for row in found]
