"""Dead letters by REST: failures, messages, one message with its body."""

from __future__ import annotations

import csv
import json
from base64 import b64decode
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AbstractUser
from django.test import Client

from mqadmin.api.views.dead_letters import DeadLetterExport
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import archive_marks, matching_rows
from mqadmin.deadletters.models import Failure, FailureHour
from mqadmin.people.masking import read_rules
from mqadmin.replays.models import ReplayEntry
from mqadmin.replays.states import EntryState
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
        ({"attempts": "16"}, 5),
        ({"attempts": "15"}, 0),
        ({"attempts": "2147483647"}, 0),
        ({"user_property": "tenant=acme"}, 0),
        ({"born_since": "2023-11-14T00:00:00Z", "born_until": "2023-11-15T00:00:00Z"}, 5),
        ({"born_until": "2023-11-14T00:00:00Z"}, 0),
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


def test_a_page_may_end_before_it_is_full_and_says_where_to_go_on(
    http: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOOKED_UP_AT_FIRST", "LOOKED_UP_AT_ONCE", "JUDGED_MAX"):
        monkeypatch.setattr(matching_rows, name, 2)
    monkeypatch.setattr(matching_rows, "FEW", 0)
    wanted = {"q": "orders", "until": "2023-11-14T22:15:00.001Z", "limit": 50}
    found, cursor, pages = [], "", 0
    while cursor is not None:
        page = get(http, "dead-letters", **wanted, cursor=cursor)
        found += [row["queue_offset"] for row in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1
    assert (found, pages) == ([0, 0], 3)


def test_one_comes_with_its_properties_and_its_body(http: Client) -> None:
    listed = get(http, "dead-letters", q="UNIQ2")["items"][0]
    assert listed["keys"] == ["order-2", "k"]
    shown = get(http, f"dead-letters/{listed['id']}")
    assert shown["body"] == {"kind": "json", "text": '{\n  "id": 2\n}', "is_cut": False, "note": ""}
    assert shown["properties"][Property.FAILURE_CLASS] == "PaymentTimeout"
    assert {
        **listed,
        "properties": shown["properties"],
        "body_is_kept": True,
        "replays": [],
        "body": shown["body"],
        "attempts": [],
        "mended": None,
        "is_on_broker": None,
    } == shown


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


def exported(http: Client, form: str, **query: Any) -> str:
    answer = http.get("/api/v1/clusters/local/dead-letters/export", {"format": form, **query})
    assert answer.status_code == 200

    async def whole() -> bytes:
        return b"".join([chunk async for chunk in answer.streaming_content])

    return async_to_sync(whole)().decode()


def test_an_export_has_bodies_that_can_be_read_back(
    http: Client, cluster: Cluster, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DeadLetterExport, "export_rows", 2)
    odd = [dead_message(0, topic="%DLQ%odd", body=b"\xff\x00"), dead_message(1, topic="%DLQ%odd", body=b"=1+1")]
    seed.make_dead_letters(cluster, "odd", odd, now=now)
    lines = [json.loads(line) for line in exported(http, "jsonl").splitlines()]
    assert len(lines) == 7
    by_place = {(line["group"], line["queue_offset"]): line for line in lines}
    assert by_place["billing", 2]["body"] == '{"id": 2}'
    assert by_place["billing", 2]["properties"][Property.FAILURE_CLASS] == "PaymentTimeout"
    assert (by_place["odd", 0]["body_encoding"], b64decode(by_place["odd", 0]["body"])) == ("base64", b"\xff\x00")
    table = list(csv.DictReader(exported(http, "csv", group="odd").splitlines()))
    assert [row["body"] for row in table] == ["'=1+1", "/wA="]


def test_an_export_has_what_the_list_finds_and_the_caller_may_see(
    http: Client, token_of: Callable[..., Client], ann: AbstractUser, settings: Any
) -> None:
    settings.MQADMIN_MASKED = read_rules("viewer:orders")
    (line,) = exported(http, "jsonl", body='"id": 2', group="billing").splitlines()
    assert json.loads(line)["body_encoding"] == "text"
    shown = [json.loads(line) for line in exported(token_of(ann, "viewer"), "jsonl").splitlines()]
    assert {(one["body_encoding"], one["body"]) for one in shown} == {("masked", "")}


def test_failures_are_grouped_and_say_what_changed_when_they_began(http: Client, cluster: Cluster) -> None:
    (timeout, untold) = get(http, "failures/grouped", by="class")["items"]
    assert (timeout["value"], timeout["dead_count"], timeout["share"]) == ("PaymentTimeout", 3, 0.6)
    assert (untold["value"], untold["failure_count"]) == ("", 2)
    assert http.get("/api/v1/clusters/local/failures/grouped", {"by": "nothing"}).status_code == 400
    failure = Failure.objects.get(failure_class="PaymentTimeout")
    found = get(http, f"failures/{failure.pk}/beginning")
    assert (found["rebalances"], found["actions"]) == ([], [])
    assert found["since"] < found["until"]


def test_a_failure_comes_with_its_share_and_its_trend(http: Client, now: datetime) -> None:
    failure = Failure.objects.get(failure_class="PaymentTimeout")
    FailureHour.objects.create(failure=failure, hour=now.replace(minute=0, second=0, microsecond=0), dead_count=2)
    found = get(http, f"failures/{failure.pk}")
    listed = next(row for row in get(http, "failures")["items"] if row["id"] == failure.pk)
    assert found == {**listed, "share": 0.6, "trend": [*[0] * 23, 2]}
    assert http.get("/api/v1/clusters/local/failures/999999").status_code == 404


def test_an_archived_failure_has_no_share(http: Client, now: datetime) -> None:
    Failure.objects.filter(failure_class="PaymentTimeout").update(archived_at=now)
    failure = Failure.objects.get(failure_class="PaymentTimeout")
    assert get(http, f"failures/{failure.pk}")["share"] is None


def test_failures_are_found_by_the_topic_that_messages_were_first_sent_to(http: Client) -> None:
    assert len(get(http, "failures", topic="orders")["items"]) == 3
    assert get(http, "failures", topic="returns")["items"] == []
    assert get(http, "failures/grouped", by="class", topic="returns")["items"] == []


def test_one_says_what_replays_did_with_it_and_by_which_key_that_is_found(
    http: Client, cluster: Cluster, now: datetime
) -> None:
    listed = get(http, "dead-letters", q="UNIQ2")["items"][0]
    job = seed.make_replay(cluster, now=now, total_count=1, unknown_count=1)
    entry = ReplayEntry.objects.create(job=job, dead_letter_id=listed["id"], state=EntryState.UNKNOWN, words="why")
    (told,) = get(http, f"dead-letters/{listed['id']}")["replays"]
    assert (told["replay"], told["entry"], told["state"], told["words"]) == (job.pk, entry.pk, "unknown", "why")
    assert told["lookup_key"] == f"replay-{job.token}-{entry.pk}"
