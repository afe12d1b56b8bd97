from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from consumer.outbox.models import OutboxMessage, OutboxState
from mqadmin.people.roles import Role
from tests.mqadmin.console.pages import names_in, text_of
from tests.support.outbox_rows import make_outbox_message
from tests.support.people import make_person


@pytest.fixture
def rows(db: None, now: datetime) -> None:
    make_outbox_message("A1", now=now - timedelta(minutes=5), order_key="order-1", last_error="broker-a: <not now>")
    make_outbox_message("A2", now=now, state=OutboxState.FAILED, attempts=9, last_error="the body is too large")
    make_outbox_message("A3", now=now, state=OutboxState.SENT)


def test_the_page_says_what_waits_what_was_given_up_and_why(http: Client, rows: None) -> None:
    page = http.get("/outbox/")
    assert names_in(page) == ["A1"]
    said = text_of(page)
    assert "1 message was given up. 1 message waits, the oldest for 5 m" in said
    assert "broker-a: <not now>" in said
    assert b"<not now>" not in page.content
    failed = http.get("/outbox/?state=failed")
    assert names_in(failed) == ["A2"]
    assert "the body is too large" in text_of(failed)
    assert "/outbox/A2/again/" in failed.content.decode()
    assert names_in(http.get("/outbox/?state=sent")) == ["A3"]


def test_an_empty_outbox_says_so(http: Client) -> None:
    assert "Everything that was written has been sent." in text_of(http.get("/outbox/"))
    assert "Nothing was given up" in text_of(http.get("/outbox/?state=failed&database=nowhere&before=garbage"))


def test_what_was_given_up_is_sent_again_from_its_page(http: Client, rows: None) -> None:
    shown = http.get("/outbox/A2/again/")
    assert "Send what was given up again: A2" in text_of(shown)
    key = shown.content.decode().partition('name="key" value="')[2].partition('"')[0]
    http.post("/outbox/A2/again/", {"message": "A2", "key": key}, follow=True)
    assert OutboxMessage.objects.get(message_id="A2").state == OutboxState.PENDING


def test_rest_lists_the_same(http: Client, rows: None) -> None:
    (row,) = http.get("/api/v1/outbox", {"state": "failed"}).json()["items"]
    assert (row["message_id"], row["attempts"], row["last_error"]) == ("A2", 9, "the body is too large")
    (row,) = http.get("/api/v1/outbox").json()["items"]
    assert (row["message_id"], row["ended_at"]) == ("A1", None)
    refused = http.get("/api/v1/outbox", {"database": "nowhere"})
    assert refused.status_code == 400
    assert "there are: default" in refused.content.decode()


@pytest.mark.parametrize(("role", "status"), [(Role.VIEWER, 403), (Role.OPERATOR, 200)])
def test_who_may_see_the_outbox(db: Any, role: Role, status: int) -> None:
    client = Client()
    client.force_login(make_person("ann", role))
    assert client.get("/outbox/").status_code == status
    assert client.get("/api/v1/outbox").status_code == status


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("failed", "or when it was attempted for 3 d."),
        ("sent", "None was sent in the last 1 h"),
    ],
)
def test_an_empty_list_says_after_what_time_rows_come_and_go(http: Client, state: str, words: str) -> None:
    assert words in text_of(http.get(f"/outbox/?state={state}"))
