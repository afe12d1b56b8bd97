from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from mqadmin.audit import chain, selectors
from mqadmin.audit.models import AuditEntry
from mqadmin.audit.selectors import PAGE_SIZE, AuditFilter

pytestmark = pytest.mark.django_db

Write = Callable[..., AuditEntry]


def numbers(wanted: AuditFilter) -> list[int]:
    return [one.number for one in selectors.page(wanted).entries]


@pytest.fixture
def told(write: Write) -> None:
    now = timezone.now()
    write(actor="ann", subject="orders", at=now - timedelta(days=3))
    write(actor="bob", subject="refunds", outcome="refused", cluster="test", at=now - timedelta(days=2))
    write(actor="ann", action="give_role", cluster="", subject="bob", way="rest", at=now - timedelta(days=1))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [3, 2, 1]),
        ({"person": "ann"}, [3, 1]),
        ({"action": "create_topic"}, [2, 1]),
        ({"cluster": "test"}, [2]),
        ({"subject": "FUND"}, [2]),
        ({"outcome": "refused"}, [2]),
        ({"way": "rest"}, [3]),
        ({"person": "ann", "cluster": "prod"}, [1]),
        ({"clusters": ["prod"]}, [1]),
        ({"clusters": []}, []),
    ],
)
def test_entries_are_found_by_what_they_say(told: None, wanted: dict[str, Any], found: list[int]) -> None:
    assert numbers(AuditFilter(**wanted)) == found


def test_entries_are_found_by_time(told: None) -> None:
    now = timezone.now()
    assert numbers(AuditFilter(since=now - timedelta(days=2, hours=1))) == [3, 2]
    assert numbers(AuditFilter(until=now - timedelta(days=2, hours=1))) == [1]


def test_a_list_goes_on_from_a_number_whatever_is_written_meanwhile(write: Write) -> None:
    for _ in range(2 * PAGE_SIZE + 5):
        write()
    first = selectors.page(AuditFilter())
    assert (first.newer, first.older) == (None, PAGE_SIZE + 6)
    write()
    second = selectors.page(AuditFilter(), before=first.older)
    assert [one.number for one in second.entries] == list(range(PAGE_SIZE + 5, 5, -1))
    third = selectors.page(AuditFilter(), before=second.older)
    assert ([one.number for one in third.entries], third.older) == ([5, 4, 3, 2, 1], None)
    back = selectors.page(AuditFilter(), after=third.newer)
    assert back.entries == second.entries
    newest = selectors.page(AuditFilter(), after=first.newer or first.entries[0].number)
    assert len(newest.entries) == 1


@pytest.mark.parametrize("name", ["actor", "action", "cluster", "outcome"])
def test_each_filter_is_served_by_its_index(told: None, name: str) -> None:
    wanted = AuditFilter(**{"person" if name == "actor" else name: "ann"})
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET enable_seqscan = off")
            cursor.execute("SET enable_sort = off")
    plan = selectors.matching(wanted).order_by("-number")[:PAGE_SIZE].explain()
    assert f"mq_audit_{name}" in plan


def test_the_export_has_a_line_per_entry_with_its_place_in_the_chain(told: None) -> None:
    lines = [json.loads(line) for line in chain.lines(selectors.export(AuditFilter()))]
    assert [one["number"] for one in lines] == [1, 2, 3]
    assert lines[1]["previous_hash"] == lines[0]["hash"]
    assert (lines[1]["actor"], lines[1]["outcome"]) == ("bob", "refused")


def test_an_entry_of_another_cluster_is_not_there(told: None) -> None:
    assert selectors.entry(1, clusters=["prod"]).subject == "orders"
    with pytest.raises(AuditEntry.DoesNotExist):
        selectors.entry(2, clusters=["prod"])
