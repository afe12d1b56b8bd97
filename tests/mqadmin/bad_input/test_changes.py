"""What goes wrong with a change, by REST and on pages: others change it, a broker or cluster goes, hostile texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.test import Client

from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.ownership import describe
from mqadmin.people.roles import Role
from remoting.wire.bodies.topics import TopicConfig
from tests.mqadmin.action_runs.conftest import NAME, House
from tests.mqadmin.api.conftest import house  # noqa: F401 - a fixture
from tests.mqadmin.console.pages import text_of
from tests.support import console_rows as seed
from tests.support.people import make_person
from tests.support.topic_brokers import TopicBrokers

pytestmark = pytest.mark.django_db

PAGE = "/clusters/prod/create-topic/"
FORM = {"topic": "orders", "read_queues": "4", "write_queues": "4", "perm": "6"}
ARGUMENTS = {"topic": "orders", "read_queues": 8, "write_queues": 8, "perm": 6}
TOPIC = "/api/v1/clusters/prod/actions/create_topic"


@pytest.fixture
def brokers(db: None, now: datetime) -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a", "broker-b") as brokers:
        prod = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
        for name in brokers.brokers:
            seed.make_broker(prod, name, now=now)
        yield brokers


def post(http: Client, path: str, **body: Any) -> Any:
    return http.post(path, body, content_type="application/json")


def hidden(page: Any) -> dict[str, str]:
    """Returns what the form that carries out holds."""
    form = page.content.decode().partition("confirm-form")[2]
    found: list[tuple[str, str]] = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: value for name, value in found if name != "csrfmiddlewaretoken"}


def test_of_two_people_at_one_topic_the_second_is_told(
    http: Client, brokers: TopicBrokers, token_of: Callable[..., Client]
) -> None:
    """One on the page, the other by REST; whoever comes second decided on what is no longer so."""
    bob = token_of(make_person("bob", Role.OPERATOR))
    seen_on_page = hidden(http.get(PAGE, FORM))
    seen_by_rest = post(bob, f"{TOPIC}/preview", arguments=ARGUMENTS).json()["fingerprint"]
    assert post(bob, f"{TOPIC}/run", arguments=ARGUMENTS, fingerprint=seen_by_rest).status_code == 200
    late = http.post(PAGE, seen_on_page)
    assert late.status_code == 409
    assert "has changed since this page was opened" in text_of(late)
    assert http.post(PAGE, hidden(late)).status_code == 302
    stale = post(bob, f"{TOPIC}/run", arguments=ARGUMENTS, fingerprint=seen_by_rest)
    assert (stale.status_code, stale.json()["type"]) == (409, "/api/v1/problems/stale")
    assert brokers["broker-a"].topics["orders"].read_queue_nums == 4
    assert [entry.outcome for entry in AuditEntry.objects.order_by("number")] == ["done", "refused", "done", "refused"]


def test_a_broker_that_vanishes_in_mid_action_leaves_an_outcome_that_is_not_known(
    http: Client, brokers: TopicBrokers
) -> None:
    brokers["broker-b"].hangs_up = True
    told = post(http, f"{TOPIC}/run", arguments=ARGUMENTS)
    assert (told.status_code, told.json()["outcome"]) == (207, "partial")
    assert [(one["item"], one["state"]) for one in told.json()["items"]] == [
        ("broker-a", "done"),
        ("broker-b", "unknown"),
    ]
    assert told.json()["items"][1]["after"] is None
    shown = http.post(PAGE, hidden(http.get(PAGE, FORM)))
    assert re.search(r"broker-b UNKNOWN", text_of(http.get(shown["Location"])))
    brokers["broker-a"].hangs_up = True
    nothing = post(http, f"{TOPIC}/run", arguments=ARGUMENTS)
    assert (nothing.status_code, nothing.json()["outcome"]) == (207, "unknown")
    brokers["broker-b"].hangs_up = brokers["broker-a"].hangs_up = False
    assert post(http, f"{TOPIC}/run", arguments=ARGUMENTS).json()["outcome"] == "done", "nobody holds the topic"


@pytest.mark.usefixtures("cluster")
def test_a_cluster_that_is_removed_in_mid_action_leaves_its_audit(http: Client, house: House) -> None:  # noqa: F811
    house.meanwhile = lambda: Cluster.objects.filter(name="local").delete() and None
    path = f"/api/v1/clusters/local/actions/{NAME}/run"
    told = post(http, path, arguments={"house": "no 7"})
    assert (told.status_code, told.json()["outcome"]) == (200, "done")
    assert AuditEntry.objects.get().cluster == "local"
    assert post(http, path, arguments={"house": "no 7"}).status_code == 404
    assert http.get("/audit/1/").status_code == 200
    assert http.get("/api/v1/audit/1").json()["cluster"] == "local"


@pytest.mark.django_db(transaction=True)
def test_an_owner_of_a_cluster_that_is_removed_in_mid_action_is_no_mistake_of_ours(
    http: Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database minds when its own transaction ends, so the test is in none."""
    found = describe.texts_of

    def gone(cluster: Cluster, kind: str, name: str) -> dict[str, str]:
        texts = found(cluster, kind, name)
        Cluster.objects.filter(pk=cluster.pk).delete()
        return texts

    monkeypatch.setattr(describe, "texts_of", gone)
    path = "/api/v1/clusters/local/actions/describe_topic/run"
    told = post(http, path, arguments={"topic": "orders", "owner": "shop"})
    assert (told.status_code, told.json()["outcome"]) == (207, "failed"), told.content
    assert told.json()["items"][0]["words"] == "The cluster was removed in between."
    assert AuditEntry.objects.get().outcome == "failed"


def test_a_token_of_another_cluster_changes_nothing_and_is_audited(
    brokers: TopicBrokers, ann: AbstractUser, token_of: Callable[..., Client]
) -> None:
    client = token_of(ann, clusters=["local"])
    for verb in ("preview", "run"):
        refused = post(client, f"{TOPIC}/{verb}", arguments=ARGUMENTS)
        assert (refused.status_code, refused.json()["type"]) == (403, "/api/v1/problems/permission-denied")
    entry = AuditEntry.objects.get()
    assert (entry.outcome, entry.way, entry.cluster) == ("refused", "rest", "prod")
    assert not brokers["broker-a"].topics
    assert client.get("/clusters/prod/topics/")["Location"].startswith("/login/"), "pages know no tokens"


def test_names_of_control_and_direction_and_html_are_refused_or_shown_as_they_are(
    http: Client, brokers: TopicBrokers, now: datetime
) -> None:
    prod = Cluster.objects.get(name="prod")
    names = [
        "<script>alert(1)</script>",
        "\u202egnp.exe",
        "a\x07b\x1b[31m",
        "a\r\nSet-Cookie: x=1",
        "..",
        "%2e/x",
        "名",
    ]
    for name in names:
        refused = post(http, f"{TOPIC}/run", arguments=ARGUMENTS | {"topic": name})
        assert (refused.status_code, refused.json()["errors"][0]["name"]) == (422, "topic")
        # A broker may have it all the same.
        seed.make_topic(prod, name, now=now, queue_count=0)
        seed.make_group(prod, name, now=now, lag=None)
        brokers["broker-a"].topics[name] = TopicConfig(topic_name=name)
    told = http.get("/api/v1/clusters/prod/topics", {"kind": "all"}).json()["items"]
    assert {row["name"] for row in told} == set(names)
    for page in ("/clusters/prod/topics/", "/clusters/prod/groups/", "/audit/", "/"):
        shown = http.get(page)
        assert shown.status_code == 200
        assert "<script>alert" not in shown.content.decode()
    export = http.get("/api/v1/clusters/prod/configuration")
    assert export.status_code == 200, export.content
    plan = http.post("/api/v1/clusters/prod/configuration/plan", export.content, content_type="application/yaml")
    assert plan.status_code in (200, 422), plan.content


TEXT = "<script>alert(1)</script>\u202e\x1b[31m\r\nX: y"


@pytest.mark.parametrize(
    ("action", "arguments", "page"),
    [
        ("create_token", {"token": TEXT, "person": "ann"}, "/tokens/"),
        ("add_cluster", {"cluster": "odd", "namesrv": "127.0.0.1:1", "note": TEXT}, "/"),
        (
            "make_job",
            {
                "job": TEXT,
                "action": "describe_topic",
                "schedule": "0 3 * * *",
                "identity": "ann",
                "cluster": "prod",
                "arguments": '{"topic": "orders"}',
            },
            "/jobs/",
        ),
    ],
)
@pytest.mark.usefixtures("brokers")
def test_free_texts_stay_texts(http: Client, action: str, arguments: dict[str, Any], page: str) -> None:
    told = post(http, f"/api/v1/actions/{action}/run", arguments=arguments)
    assert told.status_code in (200, 422), told.content
    for address in (page, "/audit/", "/audit/1/"):
        shown = http.get(address)
        assert shown.status_code == 200
        assert "<script>alert" not in shown.content.decode()
        assert "X" not in shown.headers


MEGABYTES = "x" * (2 << 20)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/login/", {"username": MEGABYTES, "password": "p"}),
        ("/login/", {"username": "ann", "password": MEGABYTES}),
        (PAGE, FORM | {"topic": MEGABYTES}),
        (PAGE, FORM | {"fingerprint": MEGABYTES, "key": MEGABYTES[: 1 << 19]}),
        ("/clusters/prod/topics/orders/describe/", {"topic": "orders", "description": MEGABYTES}),
        ("/jobs/make/", {"job": "j", "arguments": MEGABYTES}),
        ("/people/add/", {"person": MEGABYTES, "role": "viewer"}),
        (PAGE, {f"field-{number}": "x" for number in range(1001)}),
        (PAGE, FORM | {"topic": MEGABYTES + MEGABYTES}),
    ],
)
def test_two_megabytes_are_answered_and_little_of_them_is_kept(
    http: Client, brokers: TopicBrokers, path: str, form: dict[str, str]
) -> None:
    answer = (Client() if path == "/login/" else http).post(path, form)
    assert answer.status_code in (200, 400), answer.status_code
    assert len(answer.content) < 1 << 20, "they are not sent back"
    for entry in AuditEntry.objects.all():
        assert len(str(entry.arguments)) + len(entry.reason) + len(entry.subject) < 10_000
    assert not brokers["broker-a"].topics


@pytest.mark.usefixtures("brokers")
def test_the_longest_address_that_the_server_takes_is_answered(http: Client) -> None:
    long = "x" * 20_000
    for path in (
        PAGE,
        "/clusters/prod/topics/",
        "/audit/",
        "/people/",
        "/api/v1/audit",
        "/api/v1/clusters/prod/topics",
    ):
        answer = http.get(path, {"topic": long, "q": long, "subject": long})
        assert answer.status_code in (200, 400, 414), path
