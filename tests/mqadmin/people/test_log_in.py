"""Guessing of passwords is slowed down; a cache that is away keeps nobody out."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from redis.exceptions import ConnectionError as RedisConnectionError

from mqadmin.people import throttle
from mqadmin.people.roles import Role
from tests.support.people import make_person

pytestmark = pytest.mark.django_db

PASSWORD = "long-enough-for-all"


@pytest.fixture(autouse=True)
def ann() -> Any:
    return make_person("ann", Role.VIEWER, password=PASSWORD)


def attempt(client: Client, password: str, name: str = "ann") -> Any:
    return client.post("/login/", {"username": name, "password": password})


def test_after_five_failures_a_name_waits_even_with_the_right_password() -> None:
    client = Client()
    assert [attempt(client, "wrong").status_code for _ in range(5)] == [200] * 5
    answer = attempt(client, PASSWORD)
    assert answer.status_code == 429
    assert "Wait five minutes" in answer.content.decode()
    assert attempt(client, PASSWORD, "ANN").status_code == 429
    make_person("bob", Role.VIEWER, password=PASSWORD)
    assert attempt(client, PASSWORD, "bob").status_code == 302


def test_who_gets_in_has_no_failures_any_more() -> None:
    for _ in range(3):
        client = Client()
        assert [attempt(client, "wrong").status_code for _ in range(4)] == [200] * 4
        assert attempt(client, PASSWORD).status_code == 302


def test_a_cache_that_is_away_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_away(*_: Any, **__: Any) -> None:
        raise RedisConnectionError("refused")

    monkeypatch.setattr(throttle.ratelimit, "consume", is_away)
    monkeypatch.setattr(throttle.ratelimit, "clear", is_away)
    assert attempt(Client(), PASSWORD).status_code == 302
