"""Puts the figures of a day in the place of the former ones, in one transaction; the same figures again change nothing.

The rows name the folder with the Parquet of the same run; folders that no row names are left over, and are removed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from django.db import transaction
from django.utils.translation import gettext as _

from mqadmin.clusters.models import Cluster
from mqadmin.objectives.values import Objectives
from mqadmin.reports import spark_job
from mqadmin.reports.history import BadHistory
from mqadmin.reports.models import DayReport, GroupDay

HOUR_MS = 3_600_000
ROWS_PER_INSERT = 500
_SUMS = ("over_s", "produced", "consumed", "retried", "dead", "retry_wait_s")
# Figures that a row has as Spark gives them.
_AS_THEY_ARE = (
    *("lag_p50", "lag_p95", "lag_p99", "lag_max", "lag_last", "drain_s", "members"),
    *("produced", "consumed", "retried", "dead", "is_quiet", "is_abandoned", "peak_in_s", "peak_out_s"),
    *("produced_before", "lag_p95_before", "dead_before", "growth"),
    *("forecast_in_s", "forecast_low_s", "forecast_high_s", "most_out_s"),
)
_COUNTS = ("rebalance_count", "moved_queues", "lost_members")


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
    objectives: Objectives,
    now: datetime,
) -> DayReport:
    """Writes the rows of a day, and removes what no row names any more. `folder` lies in `root`.

    `objectives`: what was allowed when the day ended.
    """
    groups = sorted((_row(one, day, objectives) for one in figures), key=lambda row: row.group_name)
    digest = _digest(groups)
    totals = {name: sum(getattr(row, name) for row in groups) for name in _SUMS}
    with transaction.atomic():
        former = DayReport.objects.select_for_update().filter(cluster=cluster, day=day).first()
        report = former or DayReport(cluster=cluster, day=day, revision=0)
        if former is None or former.digest != digest:
            report.revision += 1
        # Who calls has appended what there is, alone.
        report.digest, report.made_at, report.late_at = digest, now, None
        report.is_whole = now >= datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
        report.folder = str(folder.relative_to(root))
        report.group_count, report.over_count = len(groups), sum(row.over_s > 0 for row in groups)
        report.anomaly_count = sum(len(row.anomalies) for row in groups)
        report.conflict_count = sum(row.conflict_s > 0 for row in groups)
        for name, total in totals.items():
            setattr(report, name, total)
        report.save()
        report.groups.all().delete()
        for row in groups:
            row.report = report
        GroupDay.objects.bulk_create(groups, batch_size=ROWS_PER_INSERT)
    remove_leftovers(root, cluster.name, day, report.folder)
    return report


def result_folders(root: Path, cluster: Cluster, day: date) -> dict[date, Path]:
    """Returns the results that a day is held against, of the days that have one on this machine.

    Raises BadHistory for one that cannot be read.
    """
    reports = DayReport.objects.filter(cluster=cluster, day__in=spark_job.days_needed(day))
    found = {report.day: root / report.folder for report in reports}
    kept = {one: folder for one, folder in found.items() if (folder / spark_job.HOURS).is_dir()}
    for one, folder in kept.items():
        for path in folder.glob("*/part-*.parquet"):
            try:
                pq.read_schema(path)
            except (pa.ArrowException, OSError) as error:
                words = _("%(path)s cannot be read: make the report of %(day)s again.")
                raise BadHistory(words % {"path": path, "day": one.isoformat()}) from error
    return kept


def remove_before(root: Path, day: date) -> int:
    """Removes the reports that are older than the history; returns how many."""
    old = list(DayReport.objects.filter(day__lt=day).values_list("pk", "folder"))
    for pk, folder in old:
        DayReport.objects.filter(pk=pk).delete()
        shutil.rmtree(root / folder, ignore_errors=True)
    return len(old)


def remove_leftovers(root: Path, cluster: str, day: date, kept: str) -> None:
    """Removes the folders of other runs of this day."""
    for path in day_folder(root, cluster, day).glob("run-*"):
        if str(path.relative_to(root)) != kept:
            shutil.rmtree(path, ignore_errors=True)


def _row(one: Mapping[str, Any], day: date, objectives: Objectives) -> GroupDay:
    hot, skewed, start_ms = one["hot_queue"] or {}, one["skewed_queue"] or {}, _start_ms(day)
    allowed = objectives.of_group(one["consumer_group"])

    def hour_of_day(hour_ms: int) -> int:
        return (hour_ms - start_ms) // HOUR_MS

    return GroupDay(
        group_name=one["consumer_group"],
        known_s=one["known_ms"] // 1000,
        over_s=one["over_ms"] // 1000,
        over_s_before=None if one["over_ms_before"] is None else one["over_ms_before"] // 1000,
        objective_s=allowed.lag_s,
        objective_lag=allowed.lag,
        **{name: one[name] for name in _AS_THEY_ARE},
        **{name: one[name] or 0 for name in _COUNTS},
        **{f"wait_{name}_s": _seconds(one[f"wait_{name}_ms"]) for name in ("p50", "p95", "max")},
        delivered=one["delivered"] or 0,
        **{f"delivery_{name}_s": _seconds(one[f"delivery_{name}_ms"]) for name in ("p50", "p95", "p99")},
        deliveries=[
            [found["topic"], found["delivered"], *(_seconds(found[name]) for name in ("p50_ms", "p95_ms", "p99_ms"))]
            for found in one["deliveries"] or []
        ],
        retry_wait_s=one["retry_wait_ms"] // 1000,
        worst_hour=hour_of_day(one["worst_hour"]) if one["over_ms"] else None,
        hot_queue=_place(hot),
        skew=hot.get("skew"),
        skewed_queue=_place(skewed),
        produced_skew=skewed.get("skew"),
        conflict_s=(one["conflict_ms"] or 0) // 1000,
        conflict_kind=one["conflict_kind"] or "",
        anomalies=[
            [hour_of_day(found["hour"]), found["reason"], found["value"], found["usual"]]
            for found in one["anomalies"] or []
        ],
        failures=[[found["failure"], found["origin_topic"], found["dead"]] for found in one["failures"] or []],
        hours=[
            [
                hour_of_day(hour["hour"]),
                hour["known_ms"] // 1000,
                hour["lag_mean"],
                hour["lag_max"],
                hour["over_ms"] // 1000,
                hour["lag_p50"],
                hour["lag_p95"],
            ]
            for hour in one["hours"]
        ],
    )


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _place(queue: Mapping[str, Any]) -> str:
    return f"{queue['topic']}/{queue['broker']}/{queue['queue']}" if queue else ""


def _digest(groups: Iterable[GroupDay]) -> str:
    names = [field.name for field in GroupDay._meta.concrete_fields if field.name not in ("id", "report")]
    text = json.dumps([[getattr(row, name) for name in names] for row in groups])
    return hashlib.sha256(text.encode()).hexdigest()


def _start_ms(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000
