"""Topics and groups as a file: exported, planned and applied, an outcome for each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.test import Client

from mqadmin.api.parsers import YAML_BYTES_MAX
from mqadmin.api.views import configuration
from mqadmin.api.views.configuration import ConfigurationApply
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.ownership.models import Ownership
from mqadmin.people.models import ReadOnlyCluster
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode
from tests.support import console_rows as seed
from tests.support.group_brokers import GroupBrokers

HERE = "/api/v1/clusters/prod/configuration"
FILE = """\
topics:
  orders:
    owner: shop
    read_queues: 8
    write_queues: 8
    perm: 6
groups:
  billing:
    retry_times_max: 3
"""


@pytest.fixture
def brokers() -> Iterator[GroupBrokers]:
    with GroupBrokers("broker-a", "broker-b") as brokers:
        yield brokers


@pytest.fixture
def prod(db: None, brokers: GroupBrokers, now: datetime) -> Cluster:
    cluster = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
    for name in brokers.brokers:
        seed.make_broker(cluster, name, now=now)
    return cluster


def post(http: Client, path: str, text: str | bytes = FILE, **headers: str) -> Any:
    return http.post(f"{HERE}/{path}", text, content_type="application/yaml", headers=headers)


@pytest.mark.usefixtures("prod")
def test_a_file_is_planned_applied_and_then_does_not_differ(http: Client, brokers: GroupBrokers) -> None:
    plan = post(http, "plan")
    assert plan.status_code == 200, plan.content
    assert [(one["kind"], one["name"], one["action"]) for one in plan.json()["items"]] == [
        ("topic", "orders", "create_topic"),
        ("topic", "orders", "describe_topic"),
        ("group", "billing", "create_group"),
    ]
    assert plan.json()["items"][1]["changes"][0]["after"]["owner"] == "shop"
    assert not AuditEntry.objects.exists()
    done = post(http, f"apply?fingerprint={plan.json()['fingerprint']}")
    assert done.status_code == 200, done.content
    assert [one["run"]["outcome"] for one in done.json()["items"]] == ["done", "done", "done"]
    for broker in brokers.brokers.values():
        assert broker.topics["orders"].read_queue_nums == 8
        assert broker.groups["billing"].retry_max_times == 3
    assert Ownership.objects.get().owner == "shop"
    assert AuditEntry.objects.filter(batch=done.json()["batch"], way="rest").count() == 3
    assert post(http, "plan").json()["items"] == []
    assert (post(http, "apply").status_code, post(http, "apply").json()["items"]) == (200, [])


@pytest.mark.usefixtures("prod")
def test_the_same_key_tells_what_was_done_and_does_nothing(http: Client, brokers: GroupBrokers) -> None:
    first = post(http, "apply", **{"Idempotency-Key": "k"})
    brokers["broker-a"].topics.clear()
    second = post(http, "apply", **{"Idempotency-Key": "k"})
    assert (first.status_code, second.status_code) == (200, 200)
    assert [one["run"]["is_repeat"] for one in second.json()["items"]] == [True] * 3
    assert sorted(one["run"]["run"] for one in first.json()["items"]) == sorted(
        one["run"]["run"] for one in second.json()["items"]
    )
    assert AuditEntry.objects.count() == 3
    assert "orders" not in brokers["broker-a"].topics
    assert post(http, "apply").status_code == 200
    assert "orders" in brokers["broker-a"].topics


@pytest.mark.usefixtures("prod")
@pytest.mark.parametrize(
    "other",
    [
        FILE.replace("read_queues: 8", "read_queues: 4"),
        FILE.replace("orders", "refunds"),
        FILE + "  mails:\n    retry_times_max: 3\n",
        "",
    ],
    ids=["other settings", "another topic", "a further group", "nothing"],
)
@pytest.mark.slow
def test_the_key_of_another_file_is_refused_whatever_the_plan_was(
    http: Client, brokers: GroupBrokers, other: str
) -> None:
    post(http, "apply", **{"Idempotency-Key": "k"})
    count = AuditEntry.objects.count()
    for fingerprint in ("", "?fingerprint=of-an-older-plan"):
        answer = post(http, f"apply{fingerprint}", other, **{"Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["type"]) == (422, "/api/v1/problems/key-reused")
    assert set(brokers["broker-a"].topics) == {"orders"}
    assert brokers["broker-a"].topics["orders"].read_queue_nums == 8
    assert set(brokers["broker-a"].groups) == {"billing"}
    refused = AuditEntry.objects.order_by("number")[count:]
    assert [one.outcome for one in refused] == ["refused"] * (2 if other else 0)


@pytest.mark.usefixtures("prod")
def test_what_no_time_was_left_for_is_named_and_done_the_next_time(
    http: Client, brokers: GroupBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is asked when the request begins, before each of the two entries, and after each step.
    moments = iter([0.0, 0.0, 99.0, 101.0])
    monkeypatch.setattr(ConfigurationApply, "clock", lambda _view: next(moments))
    first = post(http, "apply", **{"Idempotency-Key": "k"})
    assert first.status_code == 207
    assert [one["action"] for one in first.json()["items"]] == ["create_topic"]
    assert [one["action"] for one in first.json()["not_begun"]] == ["describe_topic", "create_group"]
    monkeypatch.undo()
    second = post(http, "apply", **{"Idempotency-Key": "k"})
    assert [(one["action"], one["run"]["is_repeat"]) for one in second.json()["items"]] == [
        ("create_topic", True),
        ("describe_topic", False),
        ("create_group", False),
    ]


@pytest.mark.usefixtures("prod")
def test_a_plan_that_no_longer_holds_refuses_the_application(http: Client, brokers: GroupBrokers) -> None:
    fingerprint = post(http, "plan").json()["fingerprint"]
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", perm=4)
    answer = post(http, f"apply?fingerprint={fingerprint}")
    assert (answer.status_code, answer.json()["type"]) == (409, "/api/v1/problems/stale")
    assert str(AuditEntry.objects.get().run) == answer.json()["run"]
    assert brokers["broker-a"].topics["orders"].perm == 4
    assert not brokers["broker-b"].topics


@pytest.mark.usefixtures("prod")
def test_a_broker_that_refuses_is_said_and_the_rest_is_done(http: Client, brokers: GroupBrokers) -> None:
    brokers["broker-b"].refusal = "the disk is full"
    answer = post(http, "apply")
    assert answer.status_code == 207
    assert [one["status"] for one in answer.json()["items"]] == [207, 200, 207]
    assert "the disk is full" in answer.content.decode()
    assert Ownership.objects.get().owner == "shop"


@pytest.mark.usefixtures("prod")
@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("topics: [1]", 422, "line 1"),
        ("topics:\n  orders:\n    colour: red\n", 422, "line 3: 'colour' is unknown"),
        ("a: &b 1", 422, "anchors"),
        (b"\xff", 422, "not UTF-8"),
        (b"\0", 422, ""),
        ("topics:\n  orders:\n    runbook: javascript:alert(1)\n", 422, "line 3: topic orders: runbook: "),
        (
            "topics:\n  a b:\n    perm: 6\n    read_queues: 1\n    write_queues: 1\n",
            422,
            "line 2: topic a b: topic: ",
        ),
        ("x" * (YAML_BYTES_MAX + 1), 413, str(YAML_BYTES_MAX)),
        ("topics:\n" + "".join(f"  t{n}:\n" for n in range(501)), 413, "501"),
    ],
)
def test_an_error_names_line_and_key_and_nothing_is_changed(
    http: Client, brokers: GroupBrokers, text: str | bytes, status: int, words: str
) -> None:
    for path in ("plan", "apply"):
        answer = post(http, path, text)
        assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), answer.content
        assert words in answer.json()["detail"]
    assert not any(broker.topics or broker.groups for broker in brokers.brokers.values())
    # What an action refused is in the audit, as everywhere; what could not be read is not.
    assert AuditEntry.objects.count() == ("topic " in words)
    assert http.post(f"{HERE}/plan", FILE, content_type="text/plain").status_code == 415
    assert post(http, "plan", "").json()["items"] == []


def test_what_is_exported_does_not_differ(http: Client, prod: Cluster, brokers: GroupBrokers, now: datetime) -> None:
    for broker in brokers.brokers.values():
        broker.topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=4, perm=6)
    brokers["broker-a"].topics["mixed"] = TopicConfig(topic_name="mixed", perm=6)
    brokers["broker-b"].topics["mixed"] = TopicConfig(topic_name="mixed", perm=4)
    for name in ("orders", "mixed"):
        seed.make_topic(prod, name, now=now)
    said = {"owner": "shop", "description": "It is\n\u202eodd: # no"}
    Ownership.objects.create(cluster=prod, kind="topic", name="orders", **said)
    answer = http.get(HERE)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/yaml; charset=utf-8")
    text = answer.content.decode()
    assert text.startswith("# topic mixed: its brokers differ")
    assert "owner: shop" in text
    assert post(http, "plan", text).json()["items"] == []
    assert "mixed" not in http.get(HERE, {"owner": "shop"}).content.decode()
    assert "orders" not in http.get(HERE, {"q": "MIX"}).content.decode()


def test_an_export_is_bounded(http: Client, prod: Cluster, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "ENTRIES_MAX", 1)
    for name in ("orders", "refunds"):
        seed.make_topic(prod, name, now=now)
    answer = http.get(HERE)
    assert (answer.status_code, answer.json()["errors"][0]["name"]) == (400, "q")
    assert http.get(HERE, {"q": "refunds"}).status_code == 200


def test_an_export_asks_each_broker_for_all_at_once(
    http: Client, prod: Cluster, brokers: GroupBrokers, now: datetime
) -> None:
    for number in range(20):
        name = f"t{number}"
        seed.make_topic(prod, name, now=now)
        seed.make_group(prod, name, now=now)
        for broker in brokers.brokers.values():
            broker.topics[name] = TopicConfig(topic_name=name, read_queue_nums=3)
    text = http.get(HERE).content.decode()
    assert text.count("read_queues: 3") == 20
    for broker in brokers.brokers.values():
        assert broker.server.asked_codes() == [
            RequestCode.GET_ALL_TOPIC_CONFIG,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        ]


def test_a_broker_that_is_away_is_said_once_and_the_others_are_exported(
    http: Client, prod: Cluster, brokers: GroupBrokers, now: datetime
) -> None:
    seed.make_topic(prod, "orders", now=now)
    seed.make_topic(prod, "refunds", now=now)
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=4)
    brokers.vanish("broker-b")
    text = http.get(HERE).content.decode()
    assert "read_queues: 4" in text
    assert text.count("# broker-b: ") == 1


def test_a_read_only_cluster_is_exported(http: Client, prod: Cluster, brokers: GroupBrokers, now: datetime) -> None:
    ReadOnlyCluster.objects.create(cluster=prod)
    for name in ("gone", "orders"):
        seed.make_topic(prod, name, now=now)
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=4)
    assert "read_queues: 4" in http.get(HERE, {"q": "orders"}).content.decode()
    for name in brokers.brokers:
        brokers.vanish(name)
    assert http.get(HERE, {"q": "gone"}).content.decode().startswith("# topic gone: ")


@pytest.mark.usefixtures("prod")
def test_a_key_that_was_used_on_another_cluster_is_one_of_its_own(
    http: Client, brokers: GroupBrokers, now: datetime
) -> None:
    post(http, "apply", **{"Idempotency-Key": "k"})
    other = seed.make_cluster("other", now=now, namesrv=brokers.namesrv)
    for name in brokers.brokers:
        seed.make_broker(other, name, now=now)
    brokers["broker-a"].topics.clear()
    path = HERE.replace("prod", "other")
    stale = http.post(
        f"{path}/apply?fingerprint=old", FILE, content_type="application/yaml", headers={"Idempotency-Key": "k"}
    )
    assert stale.json()["type"] == "/api/v1/problems/stale"
    assert "orders" not in brokers["broker-a"].topics
    done = http.post(f"{path}/apply", FILE, content_type="application/yaml", headers={"Idempotency-Key": "k"}).json()
    assert [one["run"]["cluster"] for one in done["items"]] == ["other"] * len(done["items"])
    assert not any(one["run"]["is_repeat"] for one in done["items"])


@pytest.mark.usefixtures("cluster")
def test_who_may_not_is_refused_and_audited(
    prod: Cluster, brokers: GroupBrokers, ann: AbstractUser, token_of: Callable[..., Client]
) -> None:
    viewer, elsewhere = token_of(ann, "viewer"), token_of(ann, clusters=["local"])
    assert [client.get(HERE).status_code for client in (viewer, elsewhere)] == [403, 404]
    for client in (viewer, elsewhere):
        assert post(client, "plan").status_code == 403
        before = AuditEntry.objects.count()
        refused = post(client, "apply")
        assert (refused.status_code, AuditEntry.objects.count()) == (403, before + 1)
        assert refused.json()["run"]
    ReadOnlyCluster.objects.create(cluster=prod)
    answer = post(token_of(ann), "apply")
    assert (answer.status_code, answer.json()["type"]) == (409, "/api/v1/problems/read-only")
    assert not any(broker.topics for broker in brokers.brokers.values())
    assert http_status_of_missing(token_of(ann)) == (404, 404, 404)


def http_status_of_missing(client: Client) -> tuple[int, ...]:
    path = "/api/v1/clusters/nowhere/configuration"
    plan, apply = (client.post(f"{path}/{verb}", FILE, content_type="application/yaml") for verb in ("plan", "apply"))
    return client.get(path).status_code, plan.status_code, apply.status_code


@pytest.mark.usefixtures("prod")
def test_a_file_that_would_take_long_to_read_is_too_large(http: Client) -> None:
    assert post(http, "plan", b"#" * YAML_BYTES_MAX).status_code == 200
    assert post(http, "plan", b"#" * (YAML_BYTES_MAX + 1)).status_code == 413


def test_brokers_that_are_away_are_said(http: Client, prod: Cluster, brokers: GroupBrokers) -> None:
    for name in brokers.brokers:
        brokers.vanish(name)
    for path in ("plan", "apply"):
        answer = post(http, path)
        assert (answer.status_code, answer.json()["type"]) == (503, "/api/v1/problems/unavailable")
        assert answer.json()["detail"].startswith("line 2: topic orders: ")
