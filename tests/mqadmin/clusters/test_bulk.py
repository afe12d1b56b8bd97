"""Rows written by `bulk.py` hold what Django itself would have written, on both databases."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from mqadmin.clusters.bulk import Change, insert, update, upsert, write
from mqadmin.clusters.models import Cluster, Group, QueueOffset, Topic, TopicQueue, WaitingMethod

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LATER = NOW + timedelta(seconds=15)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="local", namesrv="127.0.0.1:9876")


def make_groups(cluster: Cluster, count: int) -> list[Group]:
    upsert(
        Group,
        [Group(cluster=cluster, name=f"group-{number}", seen_at=NOW) for number in range(count)],
        unique=("cluster", "name"),
    )
    return list(Group.objects.order_by("pk"))


def test_new_row_that_another_writer_made_a_moment_earlier_is_changed(cluster: Cluster) -> None:
    make_groups(cluster, 1)
    upsert(Group, [Group(cluster=cluster, name="group-0", lag=7, seen_at=LATER)], unique=("cluster", "name"))
    assert list(Group.objects.values_list("name", "lag", "seen_at")) == [("group-0", 7, LATER)]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("lag", [5, None]),
        ("in_per_s", [0, 1.5]),
        ("is_consume_enabled", [True, None]),
        ("behind_method", [WaitingMethod.STORE_TIME, ""]),
        ("moved_at", [LATER, None]),
        ("of_brokers", [{"a": [True, 16]}, {}]),
        ("verdict_numbers", [{"lag": None}, {"lag": 5, "members": "零"}]),
    ],
)
def test_every_type_of_field_is_written_as_django_writes_it(cluster: Cluster, field: str, values: list[Any]) -> None:
    rows = make_groups(cluster, 2)
    for row, value in zip(rows, values, strict=True):
        setattr(row, field, value)
    update(Group, rows, [field])
    assert list(Group.objects.order_by("pk").values_list(field, flat=True)) == values


def test_bytes_are_written_as_they_are(cluster: Cluster) -> None:
    topic = Topic.objects.create(cluster=cluster, name="orders", seen_at=NOW)
    queue = topic.queues.create(broker_name="a", queue_id=0, min_offset=0, max_offset=0, seen_at=NOW)
    queue.max_history = b"\x00\xff" * 9
    update(type(queue), [queue], ["max_history"])
    queue.refresh_from_db()
    assert bytes(queue.max_history) == b"\x00\xff" * 9


def test_rows_are_inserted_with_every_type_of_field(cluster: Cluster) -> None:
    topic = Topic.objects.create(cluster=cluster, name="orders", seen_at=NOW)
    fields = (
        "topic",
        "broker_name",
        "queue_id",
        "min_offset",
        "max_offset",
        "max_history",
        "last_stored_at",
        "seen_at",
    )
    rows = [(topic.pk, "a", 0, 1, 9, b"\x00\xff" * 9, None, NOW), (topic.pk, "零", 1, 2, 2**62, b"", LATER, NOW)]
    insert(TopicQueue, rows, fields=fields)
    found = TopicQueue.objects.order_by("queue_id").values_list(*fields)
    assert [(*row[:5], bytes(row[5]), *row[6:]) for row in found] == rows


def test_rows_keep_the_fields_that_are_not_named(cluster: Cluster) -> None:
    first, second = make_groups(cluster, 2)
    write(Group, [Change(first.pk, {"lag": 5, "seen_at": LATER}), Change(second.pk, {"lag": None, "queue_count": 8})])
    assert list(Group.objects.order_by("pk").values_list("lag", "queue_count", "seen_at")) == [
        (5, None, LATER),
        (None, 8, NOW),
    ]


def test_row_that_is_gone_is_not_made_again(cluster: Cluster) -> None:
    gone, kept = make_groups(cluster, 2)
    Group.objects.filter(pk=gone.pk).delete()
    gone.lag = kept.lag = 3
    upsert(Group, [gone, kept], unique=("cluster", "name"))
    assert list(Group.objects.values_list("name", "lag")) == [("group-1", 3)]


def test_nothing_is_asked_of_the_database_for_no_rows(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        upsert(Group, [], unique=("cluster", "name"))
        insert(Group, [], fields=("cluster", "name", "seen_at"))
        update(Group, [], ["lag"])
        write(QueueOffset, [])
