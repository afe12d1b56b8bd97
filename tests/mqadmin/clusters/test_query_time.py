"""Queries for which somebody waits are ended, by both databases, and the connection goes on."""

from __future__ import annotations

import itertools

import pytest
from django.db import DatabaseError, connection, transaction

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.query_time import TookTooLong, ended_after

pytestmark = pytest.mark.django_db

LONG = 100_000_000
LIMIT_S = 0.02


def count_to(number: int) -> int:
    """Has the database count: it is busy meanwhile, and reads no table."""
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s) SELECT count(*) FROM n"
    with connection.cursor() as cursor:
        cursor.execute(numbers, [number])
        (count,) = cursor.fetchone()
    return int(count)


def test_what_is_done_in_time_is_not_touched() -> None:
    with ended_after(60.0):
        assert count_to(10) == 10


def test_a_long_query_is_ended_and_the_next_one_is_answered() -> None:
    with pytest.raises(TookTooLong), ended_after(LIMIT_S):
        count_to(LONG)
    assert count_to(10) == 10


def test_of_many_short_queries_one_is_the_last() -> None:
    with pytest.raises(TookTooLong), ended_after(LIMIT_S):
        all(not Cluster.objects.exists() for _ in itertools.count())
    assert not Cluster.objects.exists()


def test_a_long_query_in_a_transaction_of_its_own_is_ended() -> None:
    with pytest.raises(TookTooLong), ended_after(LIMIT_S), transaction.atomic():
        count_to(LONG)
    Cluster.objects.create(name="local", namesrv="127.0.0.1:9876")
    assert Cluster.objects.exists()


def test_what_comes_afterwards_has_its_time() -> None:
    with ended_after(LIMIT_S):
        pass
    assert count_to(300_000) == 300_000


def test_other_errors_are_what_they_are() -> None:
    with pytest.raises(DatabaseError, match="nowhere"), ended_after(60.0), connection.cursor() as cursor:
        cursor.execute("SELECT * FROM nowhere")
