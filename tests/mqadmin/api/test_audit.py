"""The audit: its filters, its export and the check of its chain, for those who may read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AbstractUser
from django.db import connection
from django.test import AsyncClient, Client
from django.utils import timezone

from mqadmin.api.views import audit as audit_view
from mqadmin.audit import triggers
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.people.roles import Role
from tests.mqadmin.audit.conftest import write  # noqa: F401 - a fixture
from tests.support import console_rows
from tests.support.people import make_person

AUDIT = "/api/v1/audit"
Write = Callable[..., AuditEntry]


@pytest.fixture
def told(write: Write) -> None:  # noqa: F811 - the fixture
    now = timezone.now()
    write(actor="ann", subject="orders", cluster="local", at=now - timedelta(days=3))
    write(actor="bob", subject="refunds", outcome="refused", cluster="test", at=now - timedelta(days=2))
    write(actor="ann", action="give_role", cluster="", subject="bob", way="rest", at=now - timedelta(days=1))


def numbers(http: Client, **query: Any) -> list[int]:
    answer = http.get(AUDIT, query)
    assert answer.status_code == 200, answer.content
    return [entry["number"] for entry in answer.json()["items"]]


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, [3, 2, 1]),
        ({"sort": "number"}, [1, 2, 3]),
        ({"person": "ann"}, [3, 1]),
        ({"action": "give_role"}, [3]),
        ({"cluster": "test"}, [2]),
        ({"subject": "FUND"}, [2]),
        ({"outcome": "refused"}, [2]),
        ({"way": "rest"}, [3]),
        ({"batch": "00000000-0000-0000-0000-000000000000"}, []),
    ],
)
def test_filters_are_those_of_the_page(http: Client, query: dict[str, str], found: list[int]) -> None:
    assert numbers(http, **query) == found


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(("name", "found"), [("since", [3, 2]), ("until", [2, 1])])
def test_days_are_filters_too(http: Client, name: str, found: list[int]) -> None:
    day = (timezone.now() - timedelta(days=2)).date()
    assert numbers(http, **{name: day.isoformat()}) == found


@pytest.mark.usefixtures("told")
def test_pages_follow_one_another_while_entries_are_written(http: Client, write: Write) -> None:  # noqa: F811
    first = http.get(AUDIT, {"limit": 2}).json()
    write()
    second = http.get(AUDIT, {"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [one["number"] for one in first["items"] + second["items"]] == [3, 2, 1]
    assert second["next_cursor"] is None


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ({"outcome": "perhaps"}, "outcome"),
        ({"way": "pigeon"}, "way"),
        ({"since": "yesterday"}, "since"),
        ({"until": "9999-12-31"}, "until"),
        ({"batch": "x"}, "batch"),
        ({"subject": "a\0b"}, "subject"),
    ],
)
def test_what_is_no_filter_is_refused_by_name(http: Client, query: dict[str, str], wrong: str) -> None:
    answer = http.get(AUDIT, query)
    assert (answer.status_code, answer.json()["errors"][0]["name"]) == (400, wrong)


@pytest.mark.usefixtures("told")
def test_an_entry_says_all_that_it_holds(http: Client) -> None:
    entry = http.get(f"{AUDIT}/2").json()
    kept = AuditEntry.objects.get(number=2)
    assert (entry["actor"], entry["outcome"], entry["hash"]) == ("bob", "refused", kept.hash)
    assert entry["previous_hash"] == AuditEntry.objects.get(number=1).hash
    for number in (4, 10**30):
        assert http.get(f"{AUDIT}/{number}").status_code == 404


@pytest.mark.django_db(transaction=True)
async def test_it_is_exported_as_json_lines(async_http: AsyncClient, cluster: Cluster) -> None:
    await sync_to_async(console_rows.make_topic)(cluster, "orders", now=timezone.now())
    body = json.dumps({"arguments": {"topic": "orders", "owner": "shop"}})
    path = "/api/v1/clusters/local/actions/describe_topic/run"
    assert (await async_http.post(path, body, content_type="application/json")).status_code == 200
    answer = await async_http.get(f"{AUDIT}?format=jsonl&sort=number")
    (line,) = b"".join([chunk async for chunk in answer]).splitlines()
    entry = json.loads(line)
    assert (entry["subject"], entry["after"]["owner"], entry["way"]) == ("orders", "shop", "rest")


@pytest.mark.usefixtures("told", "cluster")
def test_whoever_may_read_some_reads_those_alone(token_of: Callable[..., Client], ann: AbstractUser) -> None:
    local = Cluster.objects.get(name="local")
    operator = make_person("olga", Role.OPERATOR, local)
    assert numbers(token_of(operator)) == [1]
    assert token_of(operator).get(f"{AUDIT}/2").status_code == 404
    assert numbers(token_of(ann, clusters=["test", "local"])) == [1], "there is no cluster test any more"
    for client in (token_of(ann, "viewer"), token_of(operator, "viewer"), token_of(make_person("vera", Role.VIEWER))):
        assert client.get(AUDIT).status_code == 403
        assert client.get(f"{AUDIT}/1").status_code == 403


@pytest.mark.usefixtures("told")
def test_the_chain_is_checked_in_parts(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_view, "CHECKED_ENTRIES_MAX", 2)
    first = http.get(f"{AUDIT}/check").json()
    assert (first["checked_count"], first["is_whole"], first["fault"], first["broken"]) == (2, False, "", None)
    head = first["head"]
    second = http.get(f"{AUDIT}/check", {"after": f"{head['number']}:{head['hash']}"}).json()
    assert (second["checked_count"], second["is_whole"], second["head"]["number"]) == (1, True, 3)
    other = http.get(f"{AUDIT}/check", {"after": f"2:{'0' * 64}"}).json()
    assert (other["broken"], other["is_whole"]) == (2, False)
    gone = http.get(f"{AUDIT}/check", {"after": f"9:{'0' * 64}"}).json()
    assert gone["broken"] == 9
    assert http.get(f"{AUDIT}/check", {"after": "2"}).status_code == 400


@pytest.mark.usefixtures("told")
def test_a_changed_entry_is_named(http: Client) -> None:
    triggers.drop(connection)
    AuditEntry.objects.filter(number=2).update(subject="other")
    triggers.install(connection)
    found = http.get(f"{AUDIT}/check").json()
    assert (found["broken"], found["head"]["number"]) == (2, 1)
    assert "2" in found["fault"]


@pytest.mark.usefixtures("told", "cluster")
def test_the_check_is_for_administrators(token_of: Callable[..., Client], ann: AbstractUser) -> None:
    assert token_of(ann).get(f"{AUDIT}/check").status_code == 200
    for client in (token_of(ann, "operator"), token_of(ann, clusters=["local"])):
        assert client.get(f"{AUDIT}/check").status_code == 403
