"""What happened is appended to the history: by the hour, once, and again where something more became known."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from consumer.models import DeliveryHour
from mqadmin.clusters.models import Cluster, Group
from mqadmin.deadletters.models import Failure, FailureHour
from mqadmin.lag.models import SamplingState
from mqadmin.rebalances.models import RebalanceEvent
from mqadmin.reports.events import append_events
from mqadmin.reports.history import History
from mqadmin.reports.models import ConflictTime
from mqadmin.reports.receivers import note_conflicts
from mqadmin.subscriptions.models import GroupConflict
from mqadmin.subscriptions.signals import ConflictsChanged

pytestmark = pytest.mark.django_db

HOUR = datetime(2026, 11, 22, 14, tzinfo=UTC)
NOW = datetime(2026, 11, 22, 15, 20, tzinfo=UTC)
DAY = date(2026, 11, 22)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876")


@pytest.fixture
def group(cluster: Cluster) -> Group:
    return Group.objects.create(cluster=cluster, name="billing", seen_at=HOUR)


def rows(history: History, kind: str) -> list[dict[str, Any]]:
    return [row for path in history.files(kind, DAY) for row in pq.read_table(path, partitioning=None).to_pylist()]


def test_rebalances_are_appended_once(cluster: Cluster, group: Group, tmp_path: Path) -> None:
    details: dict[str, Any] = {"moves": [{}, {}, {}]}
    RebalanceEvent.objects.create(
        cluster=cluster, group=group, at=HOUR, kind="queues_moved", details=details, source="watch", source_key="1"
    )
    history = History(tmp_path)
    assert append_events(history, cluster, NOW) == 1
    assert append_events(history, cluster, NOW) == 0
    assert [(one["at"], one["kind"], one["moved_queues"]) for one in rows(history, "rebalances")] == [
        (HOUR, "queues_moved", 3)
    ]


@pytest.mark.parametrize("appended_before", [True, False], ids=["appended before", "not appended yet"])
def test_rebalances_of_a_deleted_group_stay_in_the_history(
    cluster: Cluster, group: Group, tmp_path: Path, *, appended_before: bool
) -> None:
    other = Group.objects.create(cluster=cluster, name="mail", seen_at=HOUR)
    for number, one in enumerate((group, other)):
        at = HOUR + timedelta(minutes=number)
        event = {"at": at, "kind": "lost", "client_id": "m", "source": "watch", "source_key": "1"}
        RebalanceEvent.objects.create(cluster=cluster, group=one, **event)
    history = History(tmp_path)
    if appended_before:
        append_events(history, cluster, NOW)
    group.delete()
    RebalanceEvent.objects.create(
        cluster=cluster, group=other, at=HOUR + timedelta(minutes=9), kind="joined", source="watch", source_key="2"
    )
    append_events(history, cluster, NOW)
    assert [(one["consumer_group"], one["kind"]) for one in rows(history, "rebalances")] == [
        ("billing", "lost"),
        ("mail", "lost"),
        ("mail", "joined"),
    ]


def test_a_conflict_of_a_deleted_group_is_over(cluster: Cluster, group: Group) -> None:
    ConflictTime.objects.create(cluster=cluster, group_name="billing", kind="topics", since=HOUR)
    group.delete()
    assert ConflictTime.objects.get().until is not None


def test_what_happened_in_days_without_any_append_is_not_lost(cluster: Cluster, group: Group, tmp_path: Path) -> None:
    RebalanceEvent.objects.create(
        cluster=cluster, group=group, at=HOUR, kind="lost", client_id="m", source="watch", source_key="1"
    )
    SamplingState.objects.create(cluster=cluster, appended_until_s=int(HOUR.timestamp()))
    history = History(tmp_path)
    append_events(history, cluster, HOUR + timedelta(days=6))
    assert len(rows(history, "rebalances")) == 1


def test_a_dead_letter_that_is_indexed_late_is_in_its_hour(cluster: Cluster, tmp_path: Path) -> None:
    failure = Failure.objects.create(
        cluster=cluster,
        group_name="billing",
        identity="1",
        failure_class="Timeout",
        first_dead_at=HOUR,
        last_dead_at=HOUR,
    )
    hour = FailureHour.objects.create(failure=failure, hour=HOUR, dead_count=2)
    history = History(tmp_path)
    assert append_events(history, cluster, NOW) == 1
    hour.dead_count = 3
    hour.save()
    assert append_events(history, cluster, NOW) == 1
    assert [(one["failure_class"], one["dead_count"]) for one in rows(history, "dead_letters")] == [("Timeout", 3)]


def test_a_conflict_is_cut_into_the_hours_in_which_it_lasted(
    cluster: Cluster, group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = HOUR + timedelta(minutes=40)
    conflict = GroupConflict.objects.create(
        group=group, kind="topics", odd_count=1, member_count=2, since=began, seen_at=began
    )
    monkeypatch.setattr("mqadmin.reports.receivers.timezone.now", lambda: began + timedelta(minutes=1))
    note_conflicts(ConflictsChanged(cluster, ["billing"]))
    note_conflicts(ConflictsChanged(cluster, ["billing"]))
    history = History(tmp_path)
    append_events(history, cluster, NOW)
    minutes = [(one["until"] - one["at"]) // timedelta(minutes=1) for one in rows(history, "conflicts")]
    assert minutes == [20, 20]
    conflict.delete()
    monkeypatch.setattr("mqadmin.reports.receivers.timezone.now", lambda: HOUR + timedelta(minutes=70))
    note_conflicts(ConflictsChanged(cluster, ["billing"]))
    append_events(history, cluster, NOW)
    minutes = [(one["until"] - one["at"]) // timedelta(minutes=1) for one in rows(history, "conflicts")]
    assert minutes == [20, 10]
    assert ConflictTime.objects.count() == 1


def test_deliveries_of_all_members_are_one_row_and_written_again_until_all_have_told(
    cluster: Cluster, tmp_path: Path, settings: Any
) -> None:
    settings.MQADMIN_NAMESRV = cluster.namesrv

    def counted(member: str, *counts: list[int]) -> None:
        hour_s = int(HOUR.timestamp())
        told = {"group": "billing", "topic": "orders", "member": member, "hour_s": hour_s}
        DeliveryHour.objects.create(**told, counts=list(counts))

    history = History(tmp_path)
    counted("a", [3, 2], [16, 1])
    assert (append_events(history, cluster, NOW), append_events(history, cluster, NOW)) == (1, 0)
    counted("b", [3, 5])
    assert append_events(history, cluster, NOW) == 1
    (row,) = rows(history, "deliveries")
    assert (row["at"], row["consumer_group"], row["topic"]) == (HOUR, "billing", "orders")
    assert (row["from_ms"], row["to_ms"], row["counts"]) == ([3, 16], [4, 18], [7, 1])
    much_later = HOUR + timedelta(hours=5)
    assert append_events(history, cluster, much_later) == 1, "from now on it is complete"
    counted("a clock that is hours behind", [3, 5])
    assert append_events(history, cluster, much_later) == 0
