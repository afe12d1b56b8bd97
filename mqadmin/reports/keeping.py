"""Puts the figures of a day in the place of the former ones, in one transaction; the same figures again change nothing.

The rows name the folder with the Parquet of the same run; folders that no row names are left over, and are removed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Coalesce

from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster
from mqadmin.deadletters.models import FailureHour
from mqadmin.rebalances.models import RebalanceEvent
from mqadmin.reports.models import DayReport, GroupDay

HOUR_MS = 3_600_000
ROWS_PER_INSERT = 500
_SUMS = ("over_s", "produced", "consumed", "retried", "dead")


def day_folder(root: Path, cluster: str, day: date) -> Path:
    """Returns where the results of a day lie, a folder for each run."""
    return root / f"day={day:%Y-%m-%d}" / cluster


def keep(
    cluster: Cluster,
    day: date,
    figures: Iterable[Mapping[str, Any]],
    *,
    folder: Path,
    root: Path,
    objective_s: int,
    now: datetime,
) -> DayReport:
    """Writes the rows of a day, and removes what no row names any more. `folder` lies in `root`."""
    churn, failures = _churn(cluster, day), _top_failures(cluster, day)
    groups = sorted((_row(one, day, churn, failures) for one in figures), key=lambda row: row.group_name)
    digest = _digest(groups)
    totals = {name: sum(getattr(row, name) for row in groups) for name in _SUMS}
    with transaction.atomic():
        former = DayReport.objects.select_for_update().filter(cluster=cluster, day=day).first()
        report = former or DayReport(cluster=cluster, day=day, revision=0)
        if former is None or former.digest != digest:
            report.revision += 1
        report.digest, report.made_at, report.objective_s = digest, now, objective_s
        report.is_whole = now >= datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
        report.folder = str(folder.relative_to(root))
        report.group_count, report.over_count = len(groups), sum(row.over_s > 0 for row in groups)
        for name, total in totals.items():
            setattr(report, name, total)
        report.save()
        report.groups.all().delete()
        for row in groups:
            row.report = report
        GroupDay.objects.bulk_create(groups, batch_size=ROWS_PER_INSERT)
    remove_leftovers(root, cluster.name, day, report.folder)
    return report


def remove_leftovers(root: Path, cluster: str, day: date, kept: str) -> None:
    """Removes the folders of other runs of this day."""
    for path in day_folder(root, cluster, day).glob("run-*"):
        if str(path.relative_to(root)) != kept:
            shutil.rmtree(path, ignore_errors=True)


def _row(one: Mapping[str, Any], day: date, churn: Mapping[str, int], failures: Mapping[str, str]) -> GroupDay:
    group, hot, start_ms = one["consumer_group"], one["hot_queue"] or {}, _start_ms(day)
    place = f"{hot['topic']}/{hot['broker']}/{hot['queue']}" if hot else ""
    before = one["over_ms_before"]
    return GroupDay(
        group_name=group,
        known_s=one["known_ms"] // 1000,
        over_s=one["over_ms"] // 1000,
        **{name: one[name] for name in ("lag_p50", "lag_p95", "lag_p99", "lag_max", "lag_last", "drain_s", "members")},
        **{name: one[name] for name in ("produced", "consumed", "retried", "dead", "is_quiet", "is_abandoned")},
        worst_hour=(one["worst_hour"] - start_ms) // HOUR_MS if one["over_ms"] else None,
        hot_queue=place,
        skew=hot.get("skew"),
        produced_before=one["produced_before"],
        over_s_before=None if before is None else before // 1000,
        lag_p95_before=one["lag_p95_before"],
        rebalance_count=churn.get(group, 0),
        top_failure=failures.get(group, ""),
        hours=[
            [
                (hour["hour"] - start_ms) // HOUR_MS,
                hour["known_ms"] // 1000,
                hour["lag_mean"],
                hour["lag_max"],
                hour["over_ms"] // 1000,
            ]
            for hour in one["hours"]
        ],
    )


def _churn(cluster: Cluster, day: date) -> Counter[str]:
    """Counts what was observed of each group's rebalances on that day."""
    names = RebalanceEvent.objects.filter(cluster=cluster, at__gte=_start(day), at__lt=_start(day, 1))
    return Counter(names.values_list("group__name", flat=True))


def _top_failures(cluster: Cluster, day: date) -> dict[str, str]:
    """Returns of each group what most messages died of on that day: the error's class, else the origin topic."""
    hours = FailureHour.objects.filter(failure__cluster=cluster, hour__gte=_start(day), hour__lt=_start(day, 1))
    counted = (
        hours.values("failure__group_name", "failure__failure_class", "failure__origin_topic")
        .annotate(dead=Coalesce(Sum("dead_count"), 0))
        .order_by("dead", "failure__failure_class")
    )
    return {
        row["failure__group_name"]: (row["failure__failure_class"] or row["failure__origin_topic"])[:NAME_CHARS_MAX]
        for row in counted
    }


def _digest(groups: Iterable[GroupDay]) -> str:
    names = [field.name for field in GroupDay._meta.concrete_fields if field.name not in ("id", "report")]
    text = json.dumps([[getattr(row, name) for name in names] for row in groups])
    return hashlib.sha256(text.encode()).hexdigest()


def _start(day: date, later_days: int = 0) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=later_days)


def _start_ms(day: date) -> int:
    return int(_start(day).timestamp()) * 1000
