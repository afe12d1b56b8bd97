"""What was allowed to a group when, as rows for the step that judges by it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.clusters.models import Cluster
from mqadmin.objectives.models import Objective
from mqadmin.reports.judging import Judged, has_objectives, objectives_held

pytestmark = pytest.mark.django_db

BEGIN = datetime(2026, 11, 22, tzinfo=UTC)
END = BEGIN + timedelta(days=1)
NOON = BEGIN + timedelta(hours=12)
NOON_MS = int(NOON.timestamp()) * 1000


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")


def said(
    cluster: Cluster, group: str, lag_s: int, since: datetime, until: datetime | None, lag: int | None = None
) -> None:
    Objective.objects.create(cluster=cluster, group=group, lag_s=lag_s, lag=lag, valid_from=since, valid_until=until)


def test_what_held_is_said_from_change_to_change_and_leaves_no_time_out(cluster: Cluster) -> None:
    said(cluster, "billing", 300, BEGIN - timedelta(days=30), NOON)
    said(cluster, "billing", 10, NOON, None, lag=5)
    held = objectives_held(cluster, {"billing", "orders"}, BEGIN, END)
    assert held == [Judged("billing", 0, NOON_MS, 300_000, None), Judged("billing", NOON_MS, 2**62, 10_000, 5)]


def test_a_change_of_a_pattern_cuts_only_the_groups_that_it_fits(cluster: Cluster) -> None:
    said(cluster, "bill*", 300, NOON, None)
    said(cluster, "billing", 120, BEGIN - timedelta(days=1), None)
    held = objectives_held(cluster, ["billing", "bills", "orders"], BEGIN, END)
    assert held == [
        Judged("billing", 0, 2**62, 120_000, None),
        Judged("bills", 0, NOON_MS, 60_000, None),
        Judged("bills", NOON_MS, 2**62, 300_000, None),
    ]


def test_what_held_on_other_days_does_not_count(cluster: Cluster) -> None:
    said(cluster, "*", 300, BEGIN - timedelta(days=9), BEGIN)
    said(cluster, "*", 900, END, None)
    assert not has_objectives(cluster, BEGIN, END)
    assert objectives_held(cluster, ["billing"], BEGIN, END) == []
