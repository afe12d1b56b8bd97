"""One action on many topics or groups: a request, an answer and an audit entry for each."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.test import Client

from mqadmin.action_runs import many
from mqadmin.action_runs.models import ActionRun
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.ownership.models import Ownership
from remoting.wire.bodies.topics import TopicConfig
from tests.support import console_rows as seed
from tests.support.topic_brokers import TopicBrokers

ACTIONS = "/api/v1/clusters/prod/actions"
NAMES = ("mails", "orders", "refunds")


@pytest.fixture
def brokers() -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a") as brokers:
        yield brokers


@pytest.fixture
def prod(db: None, brokers: TopicBrokers, now: datetime) -> Cluster:
    cluster = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
    seed.make_broker(cluster, "broker-a", now=now)
    for name in NAMES:
        seed.make_topic(cluster, name, now=now)
        brokers["broker-a"].topics[name] = TopicConfig(topic_name=name, perm=6)
    Ownership.objects.create(cluster=cluster, kind="topic", name="mails", owner="crm")
    return cluster


def post(http: Client, action: str, verb: str, body: Any, **headers: str) -> Any:
    return http.post(f"{ACTIONS}/{action}/{verb}", body, content_type="application/json", headers=headers)


def shut(**more: Any) -> dict[str, Any]:
    return {"arguments": {"perm": 4}, "subjects": list(NAMES)} | more


@pytest.mark.usefixtures("prod")
def test_each_is_previewed_and_run_with_an_entry_of_its_own(http: Client, brokers: TopicBrokers) -> None:
    shown = post(http, "set_topic_permission", "preview-many", shut())
    assert shown.status_code == 200, shown.content
    items = shown.json()["items"]
    assert [one["subject"] for one in items] == list(NAMES)
    assert all(one["preview"]["has_changes"] for one in items)
    assert not AuditEntry.objects.exists()
    fingerprints = {one["subject"]: one["preview"]["fingerprint"] for one in items}
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", perm=2)
    done = post(http, "set_topic_permission", "run-many", shut(fingerprints=fingerprints))
    assert done.status_code == 207
    by_name = {one["subject"]: one for one in done.json()["items"]}
    assert {name: one["status"] for name, one in by_name.items()} == {"mails": 200, "orders": 409, "refunds": 200}
    assert by_name["orders"]["problem"]["type"] == "/api/v1/problems/stale"
    assert by_name["mails"]["run"]["outcome"] == "done"
    assert [brokers["broker-a"].topics[name].perm for name in NAMES] == [4, 2, 4]
    batch = done.json()["batch"]
    assert http.get("/api/v1/audit", {"batch": batch, "sort": "number"}).json()["total_count"] is None
    entries = http.get("/api/v1/audit", {"batch": batch, "sort": "number"}).json()["items"]
    assert [(one["subject"], one["outcome"]) for one in entries] == [
        ("mails", "done"),
        ("orders", "refused"),
        ("refunds", "done"),
    ]


@pytest.mark.usefixtures("prod")
def test_runs_that_were_asked_for_together_are_found_together(
    http: Client, brokers: TopicBrokers, token_of: Callable[..., Client], django_user_model: type[AbstractUser]
) -> None:
    done = post(http, "set_topic_permission", "run-many", shut()).json()
    path = f"/api/v1/runs/together/{done['batch']}"
    told = http.get(path).json()
    assert (told["batch"], told["is_under_way"]) == (done["batch"], False)
    assert told["items"] == [one["run"] for one in done["items"]]
    ActionRun.objects.create(
        actor="ann", key="k", action="set_topic_permission", cluster="prod", subject="new", batch=done["batch"]
    )
    told = http.get(path).json()
    assert (told["is_under_way"], told["items"][-1]["subject"], told["items"][-1]["outcome"]) == (True, "new", None)
    stranger = token_of(django_user_model.objects.create_user("cleo"))
    assert stranger.get(path).status_code == 403
    assert http.get(f"/api/v1/runs/together/{uuid.uuid4()}").status_code == 404


@pytest.mark.usefixtures("prod")
def test_a_filter_finds_the_names(http: Client, brokers: TopicBrokers) -> None:
    for found, wanted in (({"q": "R"}, ["orders", "refunds"]), ({"owner": "crm"}, ["mails"]), ({}, list(NAMES))):
        shown = post(http, "set_topic_permission", "preview-many", {"arguments": {"perm": 4}, "filter": found})
        assert [one["subject"] for one in shown.json()["items"]] == wanted
    done = post(http, "set_topic_permission", "run-many", {"arguments": {"perm": 4}, "filter": {"q": "mail"}})
    assert (done.status_code, len(done.json()["items"])) == (200, 1)
    assert brokers["broker-a"].topics["mails"].perm == 4


@pytest.mark.usefixtures("prod")
def test_the_same_key_goes_on_where_no_time_was_left(
    http: Client, brokers: TopicBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "BEGIN_WITHIN_S", -1.0)
    first = post(http, "set_topic_permission", "run-many", shut(), **{"Idempotency-Key": "k"})
    assert (first.status_code, first.json()["items"]) == (207, [])
    assert first.json()["not_begun"] == list(NAMES)
    monkeypatch.undo()
    second = post(http, "set_topic_permission", "run-many", shut(), **{"Idempotency-Key": "k"})
    third = post(http, "set_topic_permission", "run-many", shut(), **{"Idempotency-Key": "k"})
    assert (second.status_code, third.status_code) == (200, 200)
    assert [one["run"]["is_repeat"] for one in second.json()["items"]] == [False] * 3
    assert [one["run"]["is_repeat"] for one in third.json()["items"]] == [True] * 3
    assert second.json()["batch"] == third.json()["batch"]
    assert AuditEntry.objects.count() == 3


@pytest.mark.usefixtures("prod")
def test_what_is_lost_for_good_is_confirmed_by_the_number(http: Client, brokers: TopicBrokers) -> None:
    body = {"arguments": {}, "subjects": ["mails", "orders"]}
    refused = post(http, "delete_topic", "run-many", body)
    assert [one["status"] for one in refused.json()["items"]] == [422, 422]
    assert post(http, "delete_topic", "run-many", body | {"confirmation": "2"}).status_code == 200
    assert list(brokers["broker-a"].topics) == ["refunds"]


@pytest.mark.usefixtures("prod")
@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"arguments": {}}, "subjects"),
        ({"arguments": {}, "subjects": []}, "subjects"),
        ({"arguments": {}, "subjects": ["a"], "filter": {}}, "subjects"),
        ({"arguments": {}, "subjects": ["a", "a"]}, "subjects"),
        ({"arguments": {}, "subjects": [f"t-{n}" for n in range(101)]}, "subjects"),
        ({"arguments": {}, "filter": {"q": "nothing has this name"}}, "filter"),
        ({"arguments": {}, "filter": {"colour": "red"}}, "filter"),
        ({"arguments": {}, "filter": {"kind": "odd"}}, "filter.kind"),
        ({"arguments": {"topic": "orders"}, "subjects": ["a"]}, "topic"),
        ({"arguments": {"perm": "4"}, "subjects": ["a"]}, "perm"),
    ],
)
def test_what_cannot_be_asked_changes_nothing(http: Client, body: Any, wrong: str) -> None:
    for verb in ("preview-many", "run-many"):
        answer = post(http, "set_topic_permission", verb, body)
        assert (answer.status_code, answer.json()["errors"][0]["name"]) == (422, wrong)
    assert not AuditEntry.objects.exists()


def test_more_than_a_hundred_are_too_many(http: Client, prod: Cluster, now: datetime) -> None:
    for number in range(98):
        seed.make_topic(prod, f"t-{number}", now=now, queue_count=0)
    answer = post(http, "set_topic_permission", "run-many", {"arguments": {"perm": 4}, "filter": {}})
    assert answer.status_code == 422
    assert "101" in answer.json()["detail"]


def test_actions_on_one_thing_are_not_for_many(http: Client, prod: Cluster) -> None:
    for action in ("set_read_only", "give_role", "nothing"):
        assert post(http, action, "run-many", shut()).status_code == 404
    for verb in ("preview-many", "run-many"):
        path = f"/api/v1/clusters/nowhere/actions/set_topic_permission/{verb}"
        assert http.post(path, shut(), content_type="application/json").status_code == 404


@pytest.mark.usefixtures("prod", "cluster")
def test_who_may_not_is_told_nothing_of_what_is_there(ann: AbstractUser, token_of: Callable[..., Client]) -> None:
    for count, client in enumerate((token_of(ann, "viewer"), token_of(ann, clusters=["local"]))):
        body = {"arguments": {"perm": 4}, "filter": {"q": "orders"}}
        assert post(client, "set_topic_permission", "preview-many", body).status_code == 403
        assert AuditEntry.objects.count() == count
        refused = post(client, "set_topic_permission", "run-many", body)
        assert refused.status_code == 403
        assert "orders" not in refused.content.decode()
        assert str(AuditEntry.objects.latest("number").run) == refused.json()["run"]
        assert AuditEntry.objects.count() == count + 1


@pytest.mark.usefixtures("prod")
@pytest.mark.parametrize("meant", [{"filter": {"q": "orders"}}, {"subjects": ["mails", "orders"]}])
def test_the_audit_says_what_was_refused_to_whoever_may_not(
    ann: AbstractUser, token_of: Callable[..., Client], meant: dict[str, Any]
) -> None:
    body = {"arguments": {"perm": 4}} | meant
    assert post(token_of(ann, "viewer"), "set_topic_permission", "run-many", body).status_code == 403
    entry = AuditEntry.objects.get()
    assert entry.arguments["perm"] == 4
    assert "orders" in str(entry.arguments)
