"""Tokens: what they open, and what they do not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.core.cache.backends.locmem import LocMemCache
from django.test import Client
from django.utils import timezone
from redis.exceptions import ConnectionError as RedisConnectionError

from mqadmin.api import throttles
from mqadmin.clusters.models import Cluster
from mqadmin.tokens import guesses
from mqadmin.tokens.models import ApiToken
from tests.support import console_rows

CLUSTERS = "/api/v1/clusters"


def test_a_token_stands_for_its_person(ann: AbstractUser, token_of: Callable[..., Client]) -> None:
    client = token_of(ann, "viewer")
    assert client.get(CLUSTERS).status_code == 200
    (token,) = client.get("/api/v1/tokens").json()["items"]
    assert (token["role"], token["clusters"], token["last_used_from"]) == ("viewer", [], "127.0.0.1")
    assert token["last_used_at"]
    assert "digest" not in token


def test_a_token_that_is_not_valid_opens_nothing(ann: AbstractUser, token_of: Callable[..., Client]) -> None:
    now = timezone.now()
    for client in (
        token_of(ann, expires_at=now - timedelta(seconds=1)),
        token_of(ann, revoked_at=now),
        Client(headers={"Authorization": "Bearer mqa_unknown"}),
        Client(headers={"Authorization": "Bearer"}),
        Client(headers={"Authorization": "Bearer \xff"}),
    ):
        answer = client.get(CLUSTERS)
        assert (answer.status_code, answer["Content-Type"]) == (401, "application/problem+json")
    client = token_of(ann)
    ann.is_active = False
    ann.save()
    assert client.get(CLUSTERS).status_code == 401


def test_a_token_of_some_clusters_sees_no_others(ann: AbstractUser, token_of: Callable[..., Client], now: Any) -> None:
    console_rows.make_cluster("prod", now=now)
    client = token_of(ann, "admin", ["prod"])
    assert [row["name"] for row in client.get(CLUSTERS).json()["items"]] == ["prod"]
    assert client.get(f"{CLUSTERS}/prod/groups").status_code == 200
    for path in ("", "/groups", "/topics", "/brokers", "/rebalances", "/lag-history", "/actions"):
        assert client.get(f"{CLUSTERS}/local{path}").status_code == 404


def test_guesses_are_slowed_down(db: None, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses.time, "time", lambda: 1_000_000_020.0)
    client = Client(headers={"Authorization": "Bearer mqa_guess"})
    statuses = [client.get(CLUSTERS).status_code for _ in range(guesses.FAILURES_PER_MIN + 1)]
    assert statuses == [401] * guesses.FAILURES_PER_MIN + [429]


def test_each_token_has_its_own_limit(
    ann: AbstractUser, token_of: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guesses.time, "time", lambda: 1_000_000_020.0)
    monkeypatch.setattr(throttles, "READS_PER_MIN", 2)
    client = token_of(ann)
    assert [client.get(CLUSTERS).status_code for _ in range(3)] == [200, 200, 429]
    answer = client.get(CLUSTERS)
    assert 0 < int(answer["Retry-After"]) <= guesses.WINDOW_S
    assert answer.json()["type"] == "/api/v1/problems/too-many-requests"
    assert token_of(ann).get(CLUSTERS).status_code == 200


def test_without_the_cache_requests_are_answered(
    ann: AbstractUser, token_of: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise RedisConnectionError("no such file")

    for name in ("get", "add", "incr", "get_many"):
        monkeypatch.setattr(LocMemCache, name, away)
    assert token_of(ann).get(f"{CLUSTERS}/local/groups").status_code == 200


def test_a_token_is_made_and_revoked_by_actions(
    http: Client, ann: AbstractUser, token_of: Callable[..., Client]
) -> None:
    arguments = {"token": "nightly", "person": "ann", "role": "operator", "clusters": ["local"], "days": 30}
    answer = http.post("/api/v1/actions/create_token/run", {"arguments": arguments}, content_type="application/json")
    assert answer.status_code == 200, answer.content
    (item,) = answer.json()["items"]
    made = ApiToken.objects.get(name="nightly")
    assert item["secret"].startswith("mqa_")
    assert item["secret"] not in str(vars(made))
    run = answer.json()["run"]
    assert http.get(f"/api/v1/runs/{run}").json()["items"][0]["secret"] == "", "it is shown once"
    client = Client(headers={"Authorization": f"Bearer {item['secret']}"})
    assert client.get(f"{CLUSTERS}/local").status_code == 200
    revoke = {"arguments": {"token": "nightly", "person": "ann"}}
    assert client.post("/api/v1/actions/revoke_token/run", revoke, content_type="application/json").status_code == 403
    assert http.post("/api/v1/actions/revoke_token/run", revoke, content_type="application/json").status_code == 200
    assert client.get(f"{CLUSTERS}/local").status_code == 401
