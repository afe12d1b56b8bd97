"""The figures of a day replace the former ones: the same ones change no revision, leftovers go."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from mqadmin.clusters.models import Cluster
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
    "produced_before": None,
    "over_ms_before": 30_500,
    "lag_p95_before": 2.0,
    "hours": [
        {"hour": START_MS + 14 * 3_600_000, "known_ms": 3_600_000, "lag_max": 10, "lag_mean": 1.5, "over_ms": 60_000}
    ],
}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")


def keep(cluster: Cluster, root: Path, run: str, *figures: dict[str, Any]) -> DayReport:
    folder = keeping.day_folder(root, cluster.name, DAY) / f"run-{run}"
    folder.mkdir(parents=True)
    now = datetime(2026, 11, 23, 1, tzinfo=UTC)
    return keeping.keep(cluster, DAY, figures, folder=folder, root=root, objective_s=60, now=now)


def test_the_rows_of_a_day_say_what_spark_found(cluster: Cluster, tmp_path: Path) -> None:
    report = keep(
        cluster, tmp_path, "1", FIGURES, FIGURES | {"consumer_group": "quiet", "over_ms": 0, "hot_queue": None}
    )
    assert (report.revision, report.is_whole, report.group_count, report.over_count) == (1, True, 2, 1)
    row = GroupDay.objects.get(group_name="billing")
    assert (row.over_s, row.over_s_before, row.worst_hour, row.hot_queue, row.skew) == (60, 30, 14, "orders/a/1", 4.0)
    assert row.hours == [[14, 3600, 1.5, 10, 60]]
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


def test_figures_that_cannot_be_read_to_their_end_change_nothing(cluster: Cluster, tmp_path: Path) -> None:
    keep(cluster, tmp_path, "1", FIGURES)
    with pytest.raises(KeyError):
        keep(cluster, tmp_path, "2", FIGURES | {"dead": 7}, {"consumer_group": "torn"})
    assert [row.dead for row in GroupDay.objects.all()] == [1]
