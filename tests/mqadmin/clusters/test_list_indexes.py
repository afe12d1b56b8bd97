"""The lists of groups are read from an index, in its order: no scan of all groups, no sort. On either database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from django.db import connection, transaction
from django.db.models import Model, QuerySet
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from mqadmin.clusters import selectors
from mqadmin.clusters.models import VERDICT_RANKS, Cluster, Group, Topic, Verdict

GROUP_COUNT = 3000

M = TypeVar("M", bound=Model)


@pytest.fixture(scope="module")
def cluster(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Cluster]:
    """Makes the rows once for all tests, which only read."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield make_rows()
        transaction.set_rollback(True)


def make_rows() -> Cluster:
    """Makes so many groups that a planner prefers an index; half of them of another cluster."""
    now = timezone.now()
    clusters = [Cluster.objects.create(name=name, namesrv=f"{name}:9876") for name in ("local", "other")]
    verdicts = list(Verdict)
    Group.objects.bulk_create(
        Group(
            cluster=clusters[number % 2],
            name=f"group-{number}",
            lag=None if number % 7 == 0 else number,
            verdict=verdicts[number % 6],
            verdict_rank=VERDICT_RANKS[verdicts[number % 6]],
            is_system=number % 50 == 0,
            due_at=now if number % 100 == 0 else None,
            seen_at=now,
        )
        for number in range(GROUP_COUNT)
    )
    Topic.objects.bulk_create(
        Topic(cluster=clusters[0], name=f"topic-{number}", seen_at=now, due_at=now if number % 100 == 0 else None)
        for number in range(GROUP_COUNT)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return clusters[0]


def shown(cluster: Cluster, sort: str, *, is_descending: bool = False) -> QuerySet[Group]:
    """The rows of a list's first page, as `selectors.groups` reads them."""
    found = cluster.groups.filter(is_system=False)
    return selectors.sorted_by(found, selectors.GROUP_SORTS[sort], is_descending=is_descending)[: selectors.PAGE_SIZE]


def due(found: QuerySet[M]) -> QuerySet[M]:
    """What a tick reads of the cluster's groups or topics."""
    return found.filter(due_at__lte=timezone.now()).order_by("due_at")[:500]


LISTS: dict[str, tuple[Callable[[Cluster], QuerySet[Group]], str]] = {
    "what needs somebody first": (lambda cluster: shown(cluster, "verdict"), "mq_group_by_verdict_rank"),
    "largest lag first": (lambda cluster: shown(cluster, "lag", is_descending=True), "mq_group_by_largest_lag"),
}


@pytest.mark.parametrize("name", LISTS)
def test_list_is_read_in_the_order_of_its_index(cluster: Cluster, name: str) -> None:
    found, index = LISTS[name]
    plan = found(cluster).explain()
    assert index in plan, plan
    assert "TEMP B-TREE FOR ORDER BY" not in plan, plan
    assert "Sort" not in plan, plan


def test_what_is_due_is_found_by_its_index(cluster: Cluster) -> None:
    """The few that are due may be sorted; what is not due is not looked at."""
    assert "mq_group_due" in due(cluster.groups.all()).explain()
    assert "mq_topic_due" in due(cluster.topics.all()).explain()
