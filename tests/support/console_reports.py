"""Reports for the story of console_story.py: days of two weeks with figures as Spark finds them; a run that failed."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from mqadmin.clusters.models import Cluster
from mqadmin.reports.models import DayReport, GroupDay, ReportRun

# The day of which most is told; the last of its week with a report. Two days before it have none: nothing was sampled.
DAY = date(2026, 11, 20)
DAYS_BEFORE = (10, 9, 8, 7, 4, 3, 1, 0)
# A name as generated ones are; it must fit beside its figures.
LONG = "warehouse-stock-synchronisation-of-all-regions-eu-central-1"
_SUMS = ("over_s", "produced", "consumed", "retried", "dead", "retry_wait_s")


def reported(cluster: Cluster, now: datetime) -> None:
    ReportRun.objects.create(
        since=DAY, until=DAY, state="failed", asked_at=now, problem="Spark's JVM was not ready within 180 s."
    )
    for before in DAYS_BEFORE:
        day = DAY - timedelta(days=before)
        groups = [billing(before), index(before), stock(before)]
        totals = {name: sum(group.get(name, 0) for group in groups) for name in _SUMS}
        totals["over_count"] = sum(group["over_s"] > 0 for group in groups)
        totals |= {"anomaly_count": 2, "conflict_count": 1}
        report = DayReport.objects.create(cluster=cluster, day=day, made_at=now, is_whole=True, group_count=3, **totals)
        for group in groups:
            GroupDay.objects.create(report=report, known_s=86_400, is_abandoned=False, **{"is_quiet": False, **group})


def hours(most: int, over_s: int, worst: int) -> list[list[float]]:
    """A day with a wave around its worst hour."""
    found = []
    for hour in range(24):
        lag = most * max(0.0, 1 - abs(hour - worst) / 6)
        found.append(
            [hour, 3_600, round(lag / 3, 1), round(lag), over_s if hour == worst else 0, round(lag / 4), round(lag / 2)]
        )
    return found


def billing(before: int) -> dict[str, Any]:
    """It misses its objective on the last days, and messages of it die."""
    over_s = max(0, 2_460 - 420 * before)
    most = 4_811 - 400 * before
    return {
        "group_name": "billing",
        "over_s": over_s,
        "produced": 90_000 - 2_000 * before,
        "consumed": 88_400 - 2_000 * before,
        "retried": 1_240 - 100 * before,
        "dead": 13 - before,
        "retry_wait_s": 49_600,
        "lag_p50": 40.0,
        "lag_p95": most / 2,
        "lag_p99": most * 0.8,
        "lag_max": most,
        "lag_last": 5,
        "drain_s": 1.5,
        "worst_hour": 14 if over_s else None,
        "hours": hours(most, over_s, 14),
        "hot_queue": "orders/broker-a/1",
        "skew": 4.0,
        "skewed_queue": "orders/broker-a/1",
        "produced_skew": 2.6,
        "produced_before": 45_000,
        "over_s_before": 60,
        "dead_before": 2,
        "growth": 2.0,
        "wait_p50_s": 0.8,
        "wait_p95_s": 64.0,
        "wait_max_s": 1_264.0,
        "peak_in_s": 41.5,
        "peak_out_s": 38.0,
        "delivered": 480,
        "delivery_p50_s": 0.08,
        "delivery_p95_s": 1.5,
        "delivery_p99_s": 95.0,
        "deliveries": [["orders", 400, 0.07, 1.4, 90.0], ["refunds", 80, 0.2, 3.0, 99.0]],
        "failures": [["shop.PaymentTimeout", "orders", 10], ["KeyError", "orders", 2]],
        "anomalies": [[14, "flood", 16_000.0, 9_800.0], [15, "slow", 4_811.0, 90.0]],
        "rebalance_count": 4,
        "moved_queues": 6,
        "lost_members": 1,
        "conflict_s": 600,
        "conflict_kind": "expression",
        "forecast_in_s": 55.0,
        "forecast_low_s": 48.0,
        "forecast_high_s": 62.0,
        "most_out_s": 50.0,
    }


def index(before: int) -> dict[str, Any]:
    """It keeps up."""
    return {
        "group_name": "orders-index",
        "over_s": 0,
        "produced": 90_000 - 2_000 * before,
        "consumed": 90_000 - 2_000 * before,
        "retried": 0,
        "dead": 0,
        "lag_p50": 1.0,
        "lag_p95": 4.0,
        "lag_p99": 6.0,
        "lag_max": 9,
        "lag_last": 0,
        "drain_s": 0.0,
        "produced_before": 86_000,
        "over_s_before": 0,
        "growth": 1.05,
        "hours": hours(9, 0, 10),
    }


def stock(before: int) -> dict[str, Any]:
    """It was over its objective a week ago, and has had nothing to do since."""
    was_busy = before >= 7
    count, over_s = (600, 300) if was_busy else (0, 0)
    return {
        "group_name": LONG,
        "over_s": over_s,
        "produced": count,
        "consumed": count,
        "retried": 0,
        "dead": 0,
        "is_quiet": not was_busy,
        "lag_p50": 0.0,
        "lag_p95": count / 2,
        "lag_p99": count / 2,
        "lag_max": count,
        "lag_last": 0,
        "drain_s": 0.0,
        "worst_hour": 3 if over_s else None,
        "hours": hours(count, over_s, 3),
    }
