"""Clocks that step during a day, zones with a change of the hour: no figure is negative, nothing counts twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.db.models import F
from django.utils import timezone

from mqadmin.clusters.models import Cluster, ClusterState, Group, QueueOffset, Topic, TopicQueue
from mqadmin.lag import sampling
from mqadmin.reports.appending import append_due
from mqadmin.reports.history import LAG, History
from mqadmin.reports.periods import day_bounds
from mqadmin.reports.spark_job import LAG_DDL, OBJECTIVE_DDL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.django_db

START = datetime(2026, 11, 22, 14, tzinfo=UTC)
# Messages that come in, and are consumed, from one cycle to the next.
A_CYCLE = 7


def stepping(real_s: float) -> float:
    """A clock that goes back by three minutes after ten, forward by an hour after thirty, and back by a minute then."""
    if real_s < 600:
        return real_s
    return real_s - 180 if real_s < 1800 else real_s + 3420 if real_s < 2400 else real_s + 3360


@pytest.fixture
def cluster(db: None) -> Cluster:
    """A group has 90 of 100 messages of a topic's only queue committed."""
    cluster = Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876", state=ClusterState.REACHABLE)
    topic = Topic.objects.create(cluster=cluster, name="orders", seen_at=START)
    topic.queues.create(broker_name="a", queue_id=0, min_offset=0, max_offset=100, seen_at=START)
    group = Group.objects.create(cluster=cluster, name="billing", member_count=1, seen_at=START)
    group.queue_offsets.create(
        topic_name="orders", broker_name="a", queue_id=0, committed_offset=90, committed_since=START, seen_at=START
    )
    return cluster


def cycle(cluster: Cluster, now: datetime) -> int | None:
    Cluster.objects.filter(pk=cluster.pk).update(last_synced_at=now, last_tried_at=now)
    return sampling.sample_cluster(Cluster.objects.with_freshness().get(pk=cluster.pk), now)


@pytest.fixture
def sampled(cluster: Cluster, tmp_path: Path) -> tuple[list[dict[str, Any]], int]:
    """The history of an hour by that clock, and how many messages were consumed from its first row to its last."""
    history, offsets, now = History(tmp_path), QueueOffset.objects.filter(group__cluster=cluster), START
    seen: list[int] = []
    for real_s in range(0, 3600, 30):
        now = START + timedelta(seconds=stepping(real_s))
        if cycle(cluster, now):
            seen.append(offsets.get().committed_offset or 0)
        TopicQueue.objects.update(max_offset=F("max_offset") + A_CYCLE)
        offsets.update(committed_offset=F("committed_offset") + A_CYCLE)
        Group.objects.update(revision=F("revision") + 1)
        if real_s % 900 == 0:
            append_due(history, cluster, now)
    append_due(history, cluster, now + timedelta(hours=2))
    # The last sample held for no time that is known.
    return rows_of(history.files("lag", START.date())), seen[-2] - seen[0]


def rows_of(paths: list[Path]) -> list[dict[str, Any]]:
    return [row for path in paths for row in pq.read_table(path, partitioning=None).to_pylist()]


def test_samples_of_a_clock_that_steps_stay_in_order_and_hold_once(
    sampled: tuple[list[dict[str, Any]], int],
) -> None:
    rows, consumed = sampled
    assert consumed >= 100 * A_CYCLE, "a step costs the cycles in it alone"
    assert all(one["until"] <= other["at"] for one, other in pairwise(rows))
    assert all(one["committed"] < other["committed"] for one, other in pairwise(rows))
    assert rows[-1]["committed"][0] - rows[0]["committed"][0] == consumed


@pytest.mark.spark
def test_figures_of_a_clock_that_steps_are_neither_negative_nor_double(
    sampled: tuple[list[dict[str, Any]], int], spark: SparkSession, tmp_path: Path
) -> None:
    from mqadmin.reports import flow_steps, steps  # needs PySpark

    rows, consumed = sampled
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=LAG), path)
    topics = steps.topic_spans(spark.read.schema(LAG_DDL).parquet(str(path)))
    hours = flow_steps.flows(topics).collect()
    assert all(hour.consumed >= 0 and hour.gap_consumed >= 0 for hour in hours)
    assert sum(hour.consumed + hour.gap_consumed for hour in hours) == consumed
    # From the last sample that held for a while to the first one after it.
    assert sum(hour.gap_consumed for hour in hours) == 2 * A_CYCLE, "over the hour that the clock left out"
    spans = steps.group_spans(steps.judged(topics, spark.createDataFrame([], OBJECTIVE_DDL), 60_000))
    known_ms = sum(span.held_ms for span in spans.collect())
    assert 0 < known_ms <= 3_600_000


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The server and the viewer are where clocks go back by an hour on 25 October 2026, and forward on 29 March."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    with timezone.override("Europe/Berlin"):
        yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("day", [date(2026, 10, 25), date(2026, 3, 29)], ids=["back", "forward"])
def test_a_day_of_a_change_of_the_hour_has_each_hour_once(
    berlin: None, day: date, tmp_path: Path, cluster: Cluster
) -> None:
    begin, end = day_bounds(day)
    assert end - begin == timedelta(hours=24)
    history = History(tmp_path)
    hours = [begin + number * timedelta(hours=1) for number in range(24)]
    for hour in hours:
        cycle(cluster, hour)
        cycle(cluster, hour + timedelta(seconds=30))
    append_due(history, cluster, end + timedelta(hours=2))
    paths = [history.path("lag", cluster.name, hour) for hour in hours]
    assert history.files("lag", day) == paths
    assert [row["at"] for row in rows_of(paths)] == hours
