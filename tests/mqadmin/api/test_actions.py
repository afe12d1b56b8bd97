"""Actions: every registered one can be previewed and run, with the same checks as on its page."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.test import Client

from mqadmin.action_runs.models import ActionRun
from mqadmin.action_runs.runs import Refusal
from mqadmin.actions.declaration import ActionRefused, ActionUnavailable
from mqadmin.api.run_answers import KIND_OF_REFUSAL
from mqadmin.audit.models import AuditEntry
from mqadmin.people.models import ReadOnlyCluster
from tests.mqadmin.action_runs.conftest import NAME, House

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("cluster")]

HERE = f"/api/v1/clusters/local/actions/{NAME}"
RED = {"arguments": {"house": "no 7", "colour": "red"}}


def post(http: Client, path: str, body: Any, **headers: str) -> Any:
    text = body if isinstance(body, str) else json.dumps(body)
    return http.post(path, text, content_type="application/json", headers=headers)


def test_a_preview_says_what_a_run_would_do_and_changes_nothing(http: Client, house: House) -> None:
    answer = post(http, f"{HERE}/preview", RED)
    assert answer.status_code == 200, answer.content
    shown = answer.json()
    assert [(one["item"], one["before"], one["after"]) for one in shown["changes"]] == [
        ("a", {"colour": "white"}, {"colour": "red"}),
        ("b", {"colour": "white"}, {"colour": "red"}),
    ]
    assert shown["has_changes"]
    assert not house.painted
    assert not AuditEntry.objects.exists()


def test_a_run_answers_with_each_item_and_what_takes_it_back(http: Client, house: House) -> None:
    fingerprint = post(http, f"{HERE}/preview", RED).json()["fingerprint"]
    answer = post(http, f"{HERE}/run", RED | {"fingerprint": fingerprint})
    assert answer.status_code == 200, answer.content
    run = answer.json()
    assert (run["outcome"], run["actor"], run["subject"], run["is_repeat"]) == ("done", "ann", "no 7", False)
    assert [(one["item"], one["state"], one["after"]) for one in run["items"]] == [
        ("a", "done", {"colour": "red"}),
        ("b", "done", {"colour": "red"}),
    ]
    assert run["undo"] == {"action": NAME, "arguments": {"house": "no 7", "colour": "red"}}
    entry = AuditEntry.objects.get()
    assert (str(entry.run), entry.way, entry.address) == (run["run"], "rest", "127.0.0.1")
    assert http.get(f"/api/v1/runs/{run['run']}").json()["items"] == run["items"]


def test_a_run_that_is_not_wholly_done_says_so_in_its_status(http: Client, house: House) -> None:
    house.fates["b"] = lambda change: change.failed("It is stuck.")
    answer = post(http, f"{HERE}/run", RED)
    assert answer.status_code == 207
    assert answer.json()["outcome"] == "partial"
    assert [(one["state"], one["words"]) for one in answer.json()["items"]] == [
        ("done", ""),
        ("failed", "It is stuck."),
    ]


def test_the_same_key_never_carries_anything_out_twice(http: Client, house: House) -> None:
    first = post(http, f"{HERE}/run", RED, **{"Idempotency-Key": "k-1"})
    second = post(http, f"{HERE}/run", RED, **{"Idempotency-Key": "k-1"})
    assert (first.status_code, second.status_code) == (200, 200)
    assert second.json() == first.json() | {"is_repeat": True}
    assert len(house.painted) == 2
    blue = {"arguments": {"house": "no 7", "colour": "blue"}}
    other = post(http, f"{HERE}/run", blue, **{"Idempotency-Key": "k-1"})
    assert (other.status_code, other.json()["type"]) == (422, "/api/v1/problems/key-reused")
    long = post(http, f"{HERE}/run", blue, **{"Idempotency-Key": "k" * 101})
    assert long.status_code == 400, "a key that is cut could be another's"


def test_a_run_under_way_is_not_begun_again(http: Client, house: House, ann: AbstractUser) -> None:
    answers: list[Any] = []

    def meanwhile() -> None:
        house.meanwhile = lambda: None
        answers.append(post(http, f"{HERE}/run", RED, **{"Idempotency-Key": "k-1"}))
        answers.append(post(http, f"{HERE}/run", RED, **{"Idempotency-Key": "k-2"}))

    house.meanwhile = meanwhile
    run = post(http, f"{HERE}/run", RED, **{"Idempotency-Key": "k-1"}).json()["run"]
    same, other = answers
    assert (same.status_code, same.json()["type"], same["Retry-After"]) == (409, "/api/v1/problems/in-progress", "1")
    assert same.json()["run"] == run
    assert (other.status_code, other.json()["type"]) == (409, "/api/v1/problems/busy")
    assert len(house.painted) == 2


def test_a_preview_that_no_longer_holds_refuses_the_run(http: Client, house: House) -> None:
    fingerprint = post(http, f"{HERE}/preview", RED).json()["fingerprint"]
    house.doors["a"] = "green"
    answer = post(http, f"{HERE}/run", RED | {"fingerprint": fingerprint})
    assert (answer.status_code, answer.json()["type"]) == (409, "/api/v1/problems/stale")
    assert str(AuditEntry.objects.get().run) == answer.json()["run"]
    assert not house.painted


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({}, "house"),
        ({"house": "no 7", "colour": "green"}, "colour"),
        ({"house": 7}, "house"),
        ({"house": ["no 7"]}, "house"),
        ({"house": None}, "house"),
        ({"house": "no 7", "coats": "2"}, "coats"),
        ({"house": "no 7", "coats": True}, "coats"),
        ({"house": "no 7", "coats": 0}, "coats"),
        ({"house": "no 7", "coats": 10**30}, "coats"),
        ({"house": "no 7", "doors": "a"}, "doors"),
        ({"house": "no 7", "doors": [1]}, "doors"),
        ({"house": "no 7", "is_glossy": "yes"}, "is_glossy"),
        ({"house": "a\0b"}, "house"),
        ({"house": "no 7", "size": 3}, ""),
    ],
)
@pytest.mark.parametrize("verb", ["preview", "run"])
def test_arguments_that_cannot_be_are_refused_by_name(
    http: Client, house: House, arguments: Any, wrong: str, verb: str
) -> None:
    answer = post(http, f"{HERE}/{verb}", {"arguments": arguments})
    assert answer.status_code == 422, answer.content
    assert {error["name"] for error in answer.json()["errors"]} == {wrong}
    assert not house.painted
    assert not ActionRun.objects.exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("{", 400),
        ("[]", 400),
        ("null", 400),
        ('{"arguments": 1}', 400),
        ('{"arguments": {}, "surplus": 1}', 400),
        ('{"arguments": {"house": "\\ud800"}}', 400),
        ("[" * 100_000, 400),
        ('"' + "x" * (1 << 20) + '"', 413),
    ],
    ids=["cut", "list", "null", "number", "surplus", "half a character", "deep", "large"],
)
def test_bodies_that_cannot_be_read_are_problems(http: Client, house: House, body: str, status: int) -> None:
    answer = post(http, f"{HERE}/run", body)
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"


def test_a_form_is_not_json(http: Client, house: House) -> None:
    assert http.post(f"{HERE}/run", {"house": "no 7"}).status_code == 415


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (ActionRefused("It is a monument."), 409, "refused-by-rule"),
        (ActionUnavailable("Nobody opens."), 503, "unavailable"),
    ],
)
@pytest.mark.parametrize("verb", ["preview", "run"])
def test_what_the_preview_refuses_is_a_problem(
    http: Client, house: House, error: Exception, status: int, kind: str, verb: str
) -> None:
    house.refusal = error
    answer = post(http, f"{HERE}/{verb}", RED)
    assert (answer.status_code, answer.json()["type"]) == (status, f"/api/v1/problems/{kind}")
    assert answer.json()["detail"] == str(error)


@pytest.mark.parametrize(
    "path",
    [
        "clusters/local/actions/none/run",
        "clusters/nowhere/actions/paint_doors/run",
        "actions/paint_doors/run",
        "clusters/local/actions/create_token/run",
    ],
)
def test_actions_and_clusters_that_there_are_not_are_problems(http: Client, house: House, path: str) -> None:
    assert post(http, f"/api/v1/{path}", RED).status_code == 404


def test_whoever_lacks_the_permission_is_refused_and_audited(
    house: House, django_user_model: type[AbstractUser]
) -> None:
    reader = Client()
    reader.force_login(django_user_model.objects.create_user("bob"))
    assert post(reader, f"{HERE}/preview", RED).status_code == 403
    answer = post(reader, f"{HERE}/run", RED)
    assert (answer.status_code, answer.json()["type"]) == (403, "/api/v1/problems/permission-denied")
    assert (AuditEntry.objects.get().actor, AuditEntry.objects.get().outcome) == ("bob", "refused")
    assert not house.painted


def test_somebody_elses_run_is_not_shown(http: Client, house: House, django_user_model: type[AbstractUser]) -> None:
    run = post(http, f"{HERE}/run", RED).json()["run"]
    reader = Client()
    reader.force_login(django_user_model.objects.create_user("bob"))
    assert reader.get(f"/api/v1/runs/{run}").status_code == 403


def test_a_session_needs_its_csrf_token(house: House, ann: AbstractUser) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ann)
    answer = post(strict, f"{HERE}/run", RED)
    assert (answer.status_code, answer["Content-Type"]) == (403, "application/problem+json")
    assert not house.painted


def test_actions_are_listed_with_the_schema_of_their_arguments(http: Client, house: House) -> None:
    listed = {one["name"]: one for one in http.get("/api/v1/clusters/local/actions").json()}
    action = listed[NAME]
    assert (action["subject"], action["is_allowed"], action["is_confirmed_by_name"]) == ("house", True, False)
    assert action["arguments"] == {
        "type": "object",
        "additionalProperties": False,
        "required": ["house"],
        "properties": {
            "house": {"title": "House", "type": "string", "maxLength": 20, "minLength": 1},
            "colour": {"title": "Colour", "type": "string", "enum": ["red", "blue"], "default": "red"},
            "doors": {
                "type": "array",
                "items": {"type": "string", "enum": ["a", "b", "c"]},
                "uniqueItems": True,
                "default": [],
            },
            "coats": {"title": "Coats", "type": "integer", "minimum": 1, "default": 2},
            "is_glossy": {"title": "Glossy", "type": "boolean", "default": False},
        },
    }
    assert "create_token" in {one["name"] for one in http.get("/api/v1/actions").json()}


def test_a_name_must_be_typed_where_nothing_takes_it_back(http: Client, cluster: Any) -> None:
    answer = post(http, "/api/v1/clusters/local/actions/delete_topic/run", {"arguments": {"topic": "orders"}})
    assert (answer.status_code, answer.json()["type"]) == (422, "/api/v1/problems/not-confirmed")


def test_a_token_runs_what_its_role_and_clusters_allow(
    house: House, ann: AbstractUser, token_of: Callable[..., Client]
) -> None:
    def status(role: str, *clusters: str) -> int:
        return int(post(token_of(ann, role, clusters), f"{HERE}/run", RED).status_code)

    assert status("viewer") == 403
    assert status("operator", "elsewhere") == 403
    assert not house.painted
    assert {entry.outcome for entry in AuditEntry.objects.all()} == {"refused"}
    assert status("operator", "local") == 200
    assert status("admin") == 200


def test_every_refusal_is_a_kind_of_problem() -> None:
    assert set(KIND_OF_REFUSAL) == set(Refusal)


def test_a_read_only_cluster_is_not_changed(http: Client, house: House, cluster: Any) -> None:
    ReadOnlyCluster.objects.create(cluster=cluster)
    answer = post(http, f"{HERE}/run", RED)
    assert (answer.status_code, answer.json()["type"]) == (409, "/api/v1/problems/read-only")
    assert post(http, f"{HERE}/preview", RED).status_code == 409
    assert not house.painted
