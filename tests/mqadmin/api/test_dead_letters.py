"""Dead letters by REST: failures, messages, one message with its body."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.test import Client

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import archive_marks
from mqadmin.deadletters.models import Failure
from mqadmin.people.masking import read_rules
from remoting.wire.properties import Property
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message

TIMEOUT = {Property.FAILURE_CLASS: "PaymentTimeout", Property.FAILURE_TEXT: "no answer"}


@pytest.fixture(autouse=True)
def _dead(cluster: Cluster, now: datetime) -> None:
    messages = [*(dead_message(offset, properties=TIMEOUT) for offset in range(3)), dead_message(3)]
    seed.make_dead_letters(cluster, "billing", messages, now=now)
    seed.make_dead_letters(cluster, "mail", [dead_message(0, topic="%DLQ%mail")], now=now)


def get(http: Client, path: str, **query: Any) -> Any:
    answer = http.get(f"/api/v1/clusters/local/{path}", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_failures_are_listed_of_a_cluster_and_of_a_group(http: Client) -> None:
    assert len(get(http, "failures")["items"]) == 3
    (first, second) = get(http, "failures", group="billing")["items"]
    assert {first["dead_count"], second["dead_count"]} == {3, 1}
    assert {first["failure_class"], second["failure_class"]} == {"PaymentTimeout", ""}


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({}, 5),
        ({"group": "billing"}, 4),
        ({"q": "UNIQ1"}, 1),
        ({"q": "order-2"}, 1),
        ({"until": "2023-11-14T00:00:00Z"}, 0),
        ({"since": "2023-11-14T00:00:00Z"}, 5),
    ],
)
def test_dead_letters_are_found(http: Client, query: dict[str, str], count: int) -> None:
    assert len(get(http, "dead-letters", **query)["items"]) == count


def test_those_of_one_failure_come_page_by_page(http: Client) -> None:
    failure = next(row["id"] for row in get(http, "failures")["items"] if row["dead_count"] == 3)
    first = get(http, "dead-letters", failure=failure, limit=2)
    second = get(http, "dead-letters", failure=failure, limit=2, cursor=first["next_cursor"])
    assert [row["queue_offset"] for row in [*first["items"], *second["items"]]] == [2, 1, 0]
    assert second["next_cursor"] is None


def test_one_comes_with_its_properties_and_its_body(http: Client) -> None:
    listed = get(http, "dead-letters", q="UNIQ2")["items"][0]
    assert listed["keys"] == ["order-2", "k"]
    shown = get(http, f"dead-letters/{listed['id']}")
    assert shown["body"] == {"kind": "json", "text": '{\n  "id": 2\n}', "is_cut": False, "note": ""}
    assert shown["properties"][Property.FAILURE_CLASS] == "PaymentTimeout"
    assert {**listed, "properties": shown["properties"], "body": shown["body"], "mended": None} == shown


def test_a_token_of_a_lower_role_sees_no_body_that_is_hidden_from_it(
    token_of: Callable[..., Client], ann: AbstractUser, settings: Any
) -> None:
    settings.MQADMIN_MASKED = read_rules("viewer:orders")
    listed = get(token_of(ann, "operator"), "dead-letters", q="UNIQ2")["items"][0]
    assert get(token_of(ann, "operator"), f"dead-letters/{listed['id']}")["body"]["kind"] == "json"
    assert get(token_of(ann, "viewer"), f"dead-letters/{listed['id']}")["body"]["kind"] == "masked"


def test_one_of_another_cluster_is_not_there(http: Client, now: datetime) -> None:
    seed.make_cluster("other", now=now)
    listed = get(http, "dead-letters")["items"][0]
    assert http.get(f"/api/v1/clusters/other/dead-letters/{listed['id']}").status_code == 404


def test_archived_ones_are_listed_apart(http: Client, cluster: Cluster, now: datetime) -> None:
    failure = Failure.objects.get(dead_count=3)
    archive_marks.mark(failure, now)
    archive_marks.carry_on()
    assert (len(get(http, "failures")["items"]), len(get(http, "dead-letters")["items"])) == (2, 2)
    (archived,) = get(http, "failures", archived="true")["items"]
    assert archived["id"] == failure.pk
    assert len(get(http, "dead-letters", archived="true")["items"]) == 3


def test_bodies_are_searched_for_who_may_see_them(
    http: Client, token_of: Callable[..., Client], ann: AbstractUser, settings: Any
) -> None:
    settings.MQADMIN_MASKED = read_rules("viewer:orders")
    (found,) = get(http, "dead-letters", body='"id": 2', group="billing")["items"]
    assert found["queue_offset"] == 2
    assert get(token_of(ann, "viewer"), "dead-letters", body='"id": 2')["items"] == []
    assert http.get("/api/v1/clusters/local/dead-letters", {"body": "id"}).status_code == 400
