"""Lists: filters and orders of the pages, cut by cursors."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from mqadmin.clusters.models import Cluster
from tests.support import console_rows as seed

GROUPS = "/api/v1/clusters/local/groups"


@pytest.fixture
def groups(cluster: Cluster, now: datetime) -> None:
    for number, lag in enumerate([5, 3, None, 5, 0, None, 12]):
        seed.make_group(cluster, f"group-{number}", now=now, lag=lag, verdict="slow" if lag == 5 else "ok")


def walk(http: Client, path: str, **query: Any) -> list[Any]:
    """Returns the names of all pages, following the cursor."""
    names: list[Any] = []
    for _page in range(100):
        answer = http.get(path, query)
        assert answer.status_code == 200, answer.content
        page = answer.json()
        assert len(page["items"]) <= query["limit"]
        names += [row["name"] for row in page["items"]]
        if page["next_cursor"] is None:
            assert "Link" not in answer
            return names
        assert answer["Link"].endswith('; rel="next"')
        query["cursor"] = page["next_cursor"]
    raise AssertionError("the list has no end")


SORTS = ["verdict", "name", "lag", "behind", "in", "out", "members"]
BOTH_WAYS = [*SORTS, *(f"-{sort}" for sort in SORTS)]
# Both kinds of order (a name, a figure that may be unknown) both ways.
FEW = ("verdict", "name", "-lag")


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize(
    "sort", [one if one in FEW else pytest.param(one, marks=pytest.mark.sweep) for one in BOTH_WAYS]
)
def test_pages_of_any_size_make_the_list_of_the_page(http: Client, sort: str) -> None:
    whole = [row["name"] for row in http.get(GROUPS, {"sort": sort}).json()["items"]]
    assert len(whole) == 7
    for limit in (1, 2, 3, 7):
        assert walk(http, GROUPS, sort=sort, limit=limit) == whole, limit


@pytest.mark.usefixtures("groups")
def test_unknown_figures_come_last_either_way(http: Client) -> None:
    def names(sort: str) -> list[str]:
        return [row["name"][-1] for row in http.get(GROUPS, {"sort": sort}).json()["items"]]

    assert names("lag") == list("4103625")
    assert names("-lag") == list("6031425")


@pytest.mark.parametrize("sort", ["name", "-messages", "in", "-queues", "last", "-groups"])
def test_topics_are_walked_in_every_order(http: Client, cluster: Cluster, now: datetime, sort: str) -> None:
    for number in range(5):
        seed.make_topic(cluster, f"topic-{number}", now=now, queue_count=number % 3, in_per_s=[0.1, None][number % 2])
    seed.make_queue_offset(seed.make_group(cluster, "reader", now=now), "topic-3", 0, now=now)
    topics = "/api/v1/clusters/local/topics"
    whole = [row["name"] for row in http.get(topics, {"sort": sort}).json()["items"]]
    assert walk(http, topics, sort=sort, limit=2) == whole


@pytest.mark.usefixtures("groups")
def test_filters_are_those_of_the_page(http: Client) -> None:
    assert {row["name"] for row in http.get(GROUPS, {"status": "slow"}).json()["items"]} == {"group-0", "group-3"}
    assert http.get(GROUPS, {"q": "P-3"}).json()["total_count"] == 1


def test_kinds_of_topics_are_chosen(http: Client, cluster: Cluster, now: datetime) -> None:
    seed.make_topic(cluster, "orders", now=now)
    seed.make_topic(cluster, "%RETRY%billing", now=now, kind="retry")
    topics = "/api/v1/clusters/local/topics"
    assert [row["name"] for row in http.get(topics).json()["items"]] == ["orders"]
    assert [row["name"] for row in http.get(topics, {"kind": "retry"}).json()["items"]] == ["%RETRY%billing"]
    assert http.get(topics, {"kind": "all"}).json()["total_count"] == 2


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "501"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"sort": "beauty"}, "sort"),
        ({"status": "sleepy"}, "status"),
        ({"q": "x" * 201}, "q"),
        ({"q": "a\0b"}, "q"),
        ({"cursor": "forged"}, "cursor"),
        ({"cursor": "x" * 4001}, "cursor"),
    ],
)
def test_what_a_list_does_not_offer_is_refused_by_name(http: Client, query: dict[str, str], wrong: str) -> None:
    answer = http.get(GROUPS, query)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert [error["name"] for error in answer.json()["errors"]] == [wrong]


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize("change", [{"sort": "-lag"}, {"q": "group"}, {"status": "ok"}])
def test_a_cursor_serves_its_own_list_alone(http: Client, change: dict[str, str]) -> None:
    cursor = http.get(GROUPS, {"limit": 2, "sort": "lag"}).json()["next_cursor"]
    assert http.get(GROUPS, {"sort": "lag", "cursor": cursor, "limit": 3}).status_code == 200
    answer = http.get(GROUPS, {"sort": "lag", "cursor": cursor, **change})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["name"] == "cursor"
