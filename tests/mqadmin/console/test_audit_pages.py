"""The pages of the audit: a list with filters, an entry, an export."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.test import Client

from mqadmin.audit import chain
from mqadmin.audit.models import AuditEntry
from mqadmin.audit.selectors import PAGE_SIZE
from mqadmin.people.roles import Role
from tests.support.people import make_person


def write(**said: Any) -> AuditEntry:
    told = {"actor": "ann", "action": "create_topic", "cluster": "local", "subject": "orders", "outcome": "done"}
    return chain.append(AuditEntry(**{**told, **said}))


def text(response: Any) -> str:
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def rows(response: Any) -> list[int]:
    return [int(number) for number in re.findall(r'data-row="(\d+)"', text(response))]


def test_the_list_shows_the_newest_first_with_who_what_and_from_where(http: Client, cluster: Any) -> None:
    write()
    write(actor="bob", outcome="refused", way="rest", address="192.0.2.7", via="nightly", subject="<b>x</b>")
    page = http.get("/audit/")
    assert rows(page) == [2, 1]
    said = text(page)
    for word in ("Create a topic", "REFUSED", "bob", "through nightly", "REST 192.0.2.7"):
        assert word in said
    assert "<b>x</b>" not in page.content.decode()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?person=bob", [2]),
        ("?action=create_topic&outcome=done", [1]),
        ("?cluster=local&subject=ord", [1]),
        ("?since=2000-01-01&until=2000-01-02", []),
        ("?since=2000-01-01", [2, 1]),
        ("?since=nonsense&until=2000-13-45&before=x&batch=7", [2, 1]),
        ("?subject=a%00b", []),
        ("?before=2", [1]),
    ],
)
def test_filters_are_in_the_address(http: Client, query: str, found: list[int]) -> None:
    write()
    write(actor="bob", outcome="refused", subject="refunds", cluster="test")
    assert rows(http.get(f"/audit/{query}")) == found


def test_a_long_list_goes_on_by_links_that_keep_the_filters(http: Client) -> None:
    for _ in range(PAGE_SIZE + 2):
        write()
    first = http.get("/audit/?person=ann")
    (older,) = re.findall(r'href="(\?[^"]+)" rel="next"', text(first))
    second = http.get(f"/audit/{older}")
    assert rows(second) == [2, 1]
    (newer,) = re.findall(r'href="(\?[^"]+)" rel="prev"', text(second))
    assert rows(http.get(f"/audit/{newer}")) == rows(first)
    assert "person=ann" in newer


def test_an_entry_shows_before_and_after_of_each_item(http: Client) -> None:
    entry = write(
        before={"broker-a": {"read_queues": 4}},
        after={"broker-a": {"read_queues": 8}},
        items=[{"item": "broker-a", "state": "done", "words": ""}],
        arguments={"topic": "orders", "read_queues": 8},
        way="page",
        user_agent="Firefox",
    )
    said = text(http.get("/audit/1/"))
    assert "queues to read</span> 4 → <b>8</b>" in said
    for word in ("Firefox", entry.hash, "none: it is the first"):
        assert word in said


def test_an_entry_of_an_action_that_is_no_more_is_shown_by_its_name(http: Client) -> None:
    write(action="paint_doors")
    assert "paint_doors: orders" in text(http.get("/audit/1/"))
    assert http.get("/audit/2/").status_code == 404


def test_the_export_streams_what_the_filters_let_through(http: Client) -> None:
    write()
    write(actor="bob")
    response = http.get("/audit/export.jsonl?person=bob")
    lines = b"".join(response.streaming_content).splitlines()
    assert [json.loads(line)["actor"] for line in lines] == ["bob"]
    assert response["Content-Type"] == "application/jsonl; charset=utf-8"


def logged_in(person: Any) -> Client:
    client = Client()
    client.force_login(person)
    return client


@pytest.mark.parametrize("address", ["/audit/", "/audit/1/", "/audit/export.jsonl", "/audit/expire/"])
def test_whoever_may_not_read_the_audit_is_refused(db: Any, address: str) -> None:
    write()
    assert logged_in(make_person("reader", Role.VIEWER)).get(address).status_code == 403


def test_whoever_works_on_one_cluster_reads_its_entries_alone(cluster: Any) -> None:
    write(cluster="local")
    write(cluster="other")
    write(cluster="", action="give_role", subject="bob")
    client = logged_in(make_person("reader", Role.OPERATOR, on=cluster))
    assert rows(client.get("/audit/")) == [1]
    assert (client.get("/audit/1/").status_code, client.get("/audit/2/").status_code) == (200, 404)
    assert len(b"".join(client.get("/audit/export.jsonl").streaming_content).splitlines()) == 1


def test_whoever_may_read_it_is_led_there_and_not_to_its_expiry(db: Any) -> None:
    write()
    said = text(logged_in(make_person("reader", Role.OPERATOR)).get("/audit/"))
    assert 'href="/audit/"' in said
    assert "/audit/expire/" not in said


def test_old_entries_are_removed_by_a_page(http: Client) -> None:
    write()
    assert "Remove what is older than" in text(http.get("/audit/expire/"))
    assert "The entries of the last 30 days always stay" in text(http.get("/audit/expire/?before=2999-01-01"))
    assert "is so already" in text(http.get("/audit/expire/?before=2001-01-01"))
