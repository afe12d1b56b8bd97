"""Problems: whatever is not what was asked for is answered as RFC 9457 has it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from mqadmin.api import problems
from mqadmin.clusters import selectors
from mqadmin.clusters.models import Cluster


def problem(answer: Any) -> dict[str, Any]:
    assert answer["Content-Type"] == problems.MEDIA_TYPE
    document = answer.json()
    assert {"type", "title", "status", "detail"} <= document.keys()
    assert document["status"] == answer.status_code
    return document


@pytest.mark.parametrize(
    "path",
    [
        "clusters/nowhere",
        "clusters/nowhere/groups",
        "clusters/local/groups/nobody",
        "clusters/local/groups/nobody/queues",
        "clusters/local/topics/nothing",
        "clusters/local/topics/a%00b",
        "clusters/",
        "nonsense",
        "",
        "problems/none",
    ],
)
def test_what_is_not_there_is_a_problem(http: Client, cluster: Cluster, path: str) -> None:
    answer = http.get(f"/api/v1/{path}")
    assert answer.status_code == 404
    assert problem(answer)["type"] == "/api/v1/problems/not-found"


def test_whoever_is_unknown_is_asked_for_a_token(db: None, cluster: Cluster) -> None:
    answer = Client().get("/api/v1/clusters")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert problem(answer)["type"].endswith("not-authenticated")
    assert Client().get("/api/v1/nonsense").status_code == 401


def test_a_method_that_an_address_does_not_take_is_a_problem(http: Client, cluster: Cluster) -> None:
    for method in ("post", "put", "patch", "delete", "options", "trace"):
        answer = getattr(http, method)("/api/v1/clusters")
        assert (method, answer.status_code) == (method, 405)
        assert "GET" in answer["Allow"]
        problem(answer)


def test_a_format_that_there_is_not_is_a_problem(http: Client, cluster: Cluster) -> None:
    answer = http.get("/api/v1/clusters", headers={"Accept": "text/xml"})
    assert answer.status_code == 406
    problem(answer)


def test_a_mistake_of_ours_is_a_problem_and_is_logged(
    http: Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_name: str) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(selectors, "cluster_page", fail)
    answer = http.get("/api/v1/clusters/local")
    assert answer.status_code == 500
    assert "secret" not in str(problem(answer))
    assert "GET /api/v1/clusters/local failed" in caplog.text


def test_a_database_that_is_away_is_a_problem(http: Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_name: str) -> None:
        raise OperationalError("no such host")

    monkeypatch.setattr(selectors, "cluster_page", fail)
    answer = http.get("/api/v1/clusters/local")
    assert answer.status_code == 503
    assert answer["Retry-After"]
    problem(answer)


def test_each_kind_of_problem_says_what_to_do(http: Client) -> None:
    kinds = http.get("/api/v1/problems").json()["items"]
    assert [kind["name"] for kind in kinds] == sorted(problems.KINDS)
    for kind in kinds:
        shown = http.get(kind["type"]).json()
        assert shown == kind
        assert shown["remedy"]
