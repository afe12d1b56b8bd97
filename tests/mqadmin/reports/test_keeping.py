"""The figures of a day replace the former ones: the same ones change no revision, leftovers go."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mqadmin.clusters.models import Cluster
from mqadmin.objectives.values import Objectives
from mqadmin.reports import keeping
from mqadmin.reports.models import DayReport, GroupDay

pytestmark = pytest.mark.django_db

DAY = date(2026, 11, 22)
START_MS = int(datetime(2026, 11, 22, tzinfo=UTC).timestamp()) * 1000
FIGURES: dict[str, Any] = {
    "consumer_group": "billing",
    "known_ms": 7_200_000,
    "over_ms": 60_000,
    "lag_p50": 0.0,
    "lag_p95": 5.0,
    "lag_p99": 9.0,
    "lag_max": 10,
    "lag_last": 0,
    "drain_s": 0.0,
    "worst_hour": START_MS + 14 * 3_600_000,
    "produced": 100,
    "consumed": 100,
    "retried": 3,
    "dead": 1,
    "members": 2,
    "is_quiet": False,
    "is_abandoned": False,
    "hot_queue": {"topic": "orders", "broker": "a", "queue": 1, "lag_mean": 5.0, "skew": 4.0},
    "retry_wait_ms": 90_500,
    "peak_in_s": 1.5,
    "peak_out_s": 2.0,
    "wait_p50_ms": 0,
    "wait_p95_ms": 61_000,
    "wait_max_ms": None,
    "skewed_queue": None,
    "growth": 1.5,
    "dead_before": 1,
    "rebalance_count": None,
    "moved_queues": None,
    "lost_members": 2,
    "conflict_ms": 60_000,
    "conflict_kind": "expressions",
    "forecast_in_s": 3.0,
    "forecast_low_s": 1.0,
    "forecast_high_s": 5.0,
    "most_out_s": 4.0,
    "anomalies": [{"hour": START_MS + 14 * 3_600_000, "reason": "flood", "value": 9.0, "usual": 1.0}],
    "failures": [{"failure": "Timeout", "origin_topic": "orders", "dead": 1}],
    "delivered": 7,
    "delivery_p50_ms": 80,
    "delivery_p95_ms": 1_500,
    "delivery_p99_ms": None,
    "deliveries": [{"topic": "orders", "delivered": 7, "p50_ms": 80, "p95_ms": 1_500, "p99_ms": 9_000}],
    "produced_before": None,
    "over_ms_before": 30_500,
    "lag_p95_before": 2.0,
    "hours": [
        {
            "hour": START_MS + 14 * 3_600_000,
            "known_ms": 3_600_000,
            "lag_max": 10,
            "lag_mean": 1.5,
            "over_ms": 60_000,
            "lag_p50": 1.0,
            "lag_p95": 8.5,
        }
    ],
}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")


def keep(cluster: Cluster, root: Path, run: str, *figures: dict[str, Any]) -> DayReport:
    folder = keeping.day_folder(root, cluster.name, DAY) / f"run-{run}"
    folder.mkdir(parents=True)
    now = datetime(2026, 11, 23, 1, tzinfo=UTC)
    return keeping.keep(cluster, DAY, figures, folder=folder, root=root, objectives=Objectives(), now=now)


def test_the_rows_of_a_day_say_what_spark_found(cluster: Cluster, tmp_path: Path) -> None:
    report = keep(
        cluster, tmp_path, "1", FIGURES, FIGURES | {"consumer_group": "quiet", "over_ms": 0, "hot_queue": None}
    )
    assert (report.revision, report.is_whole, report.group_count, report.over_count) == (1, True, 2, 1)
    row = GroupDay.objects.get(group_name="billing")
    assert (row.over_s, row.over_s_before, row.worst_hour, row.hot_queue, row.skew) == (60, 30, 14, "orders/a/1", 4.0)
    assert row.hours == [[14, 3600, 1.5, 10, 60, 1.0, 8.5]]
    assert row.by_hour[0].lag_p95 == 8.5
    assert (row.anomalies, row.failures) == ([[14, "flood", 9.0, 1.0]], [["Timeout", "orders", 1]])
    assert (row.retry_wait_s, row.wait_p95_s, row.wait_max_s, row.lost_members) == (90, 61.0, None, 2)
    assert (row.delivered, row.delivery_p95_s, row.delivery_p99_s) == (7, 1.5, None)
    assert row.deliveries == [["orders", 7, 0.08, 1.5, 9.0]]
    assert (row.conflict_s, row.objective_s) == (60, 60)
    assert (report.anomaly_count, report.conflict_count) == (2, 2)
    assert GroupDay.objects.get(group_name="quiet").worst_hour is None


def test_the_same_figures_again_are_the_same_revision_and_leave_no_second_rows(
    cluster: Cluster, tmp_path: Path
) -> None:
    keep(cluster, tmp_path, "1", FIGURES)
    assert keep(cluster, tmp_path, "2", FIGURES).revision == 1
    assert keep(cluster, tmp_path, "3", FIGURES | {"dead": 2}).revision == 2
    assert [row.dead for row in GroupDay.objects.all()] == [2]


def test_only_the_folder_that_a_row_names_stays(cluster: Cluster, tmp_path: Path) -> None:
    keep(cluster, tmp_path, "killed", FIGURES)
    report = keep(cluster, tmp_path, "2", FIGURES)
    folders = [str(path.relative_to(tmp_path)) for path in keeping.day_folder(tmp_path, "prod", DAY).iterdir()]
    assert folders == [report.folder]


def test_results_are_found_again_for_the_days_after_and_removed_with_the_history(
    cluster: Cluster, tmp_path: Path
) -> None:
    report = keep(cluster, tmp_path, "1", FIGURES)
    assert keeping.result_folders(tmp_path, cluster, DAY + timedelta(days=1)) == {}, "one of before had no hours"
    (tmp_path / report.folder / "hours").mkdir()
    assert keeping.result_folders(tmp_path, cluster, DAY + timedelta(days=1)) == {DAY: tmp_path / report.folder}
    assert keeping.result_folders(tmp_path, cluster, DAY) == {}
    assert keeping.remove_before(tmp_path, DAY) == 0
    assert keeping.remove_before(tmp_path, DAY + timedelta(days=1)) == 1
    assert not (tmp_path / report.folder).exists()


def test_figures_that_cannot_be_read_to_their_end_change_nothing(cluster: Cluster, tmp_path: Path) -> None:
    keep(cluster, tmp_path, "1", FIGURES)
    with pytest.raises(KeyError):
        keep(cluster, tmp_path, "2", FIGURES | {"dead": 7}, {"consumer_group": "torn"})
    assert [row.dead for row in GroupDay.objects.all()] == [1]
