"""What a member delivered is written by the hour: again without adding, later when the database was away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError

from consumer.delivery import writing
from consumer.delivery.counting import HOUR_MS, HOURS_WAITING_MAX, DeliveryCounts
from consumer.models import DeliveryHour
from consumer.tasks import forget_deliveries

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 22, 14, 20, tzinfo=UTC)
NOW_MS = int(NOW.timestamp()) * 1000
HOUR_S = int(NOW.replace(minute=0).timestamp())


def write(counts: DeliveryCounts, now_ms: int = NOW_MS, member: str = "me") -> None:
    writing.write("", "billing", member, counts, now_ms)


def rows() -> list[tuple[str, str, int, list[list[int]]]]:
    found = DeliveryHour.objects.order_by("hour_s", "topic", "member")
    return [(row.topic, row.member, row.hour_s - HOUR_S, row.counts) for row in found]


def test_an_hours_row_is_replaced_by_all_that_is_known() -> None:
    counts = DeliveryCounts()
    counts("orders", NOW_MS, [3, 3, 5])
    write(counts)
    counts("orders", NOW_MS + 1, [3])
    counts("refunds", NOW_MS + 1, [-9])
    write(counts)
    write(counts, member="another name, were there anything new")
    assert rows() == [("orders", "me", 0, [[3, 3], [5, 1]]), ("refunds", "me", 0, [[0, 1]])]


def test_the_next_hour_has_a_row_of_its_own_and_the_one_before_is_forgotten_an_hour_after_it_was_written() -> None:
    counts = DeliveryCounts()
    counts("orders", NOW_MS, [3])
    counts("orders", NOW_MS + HOUR_MS, [4])
    write(counts, NOW_MS + HOUR_MS)
    assert rows() == [("orders", "me", 0, [[3, 1]]), ("orders", "me", 3600, [[4, 1]])]
    assert counts.changed(NOW_MS + 2 * HOUR_MS) == []
    DeliveryHour.objects.all().delete()
    counts("orders", NOW_MS, [3])
    counts("orders", NOW_MS + HOUR_MS, [4])
    write(counts, NOW_MS + 2 * HOUR_MS)
    assert rows() == [("orders", "me", 0, [[3, 1]]), ("orders", "me", 3600, [[4, 2]])]


def test_what_is_counted_just_after_the_hour_was_written_is_added_to_it() -> None:
    counts = DeliveryCounts()
    counts("orders", NOW_MS, [3, 3, 3])
    write(counts, NOW_MS + HOUR_MS)
    write(counts, NOW_MS + HOUR_MS)
    counts("orders", NOW_MS, [5])
    write(counts, NOW_MS + HOUR_MS)
    assert rows() == [("orders", "me", 0, [[3, 3], [5, 1]])]


def test_what_the_database_did_not_take_comes_with_the_next_write_for_some_hours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("the database is away")

    counts = DeliveryCounts()
    counts("orders", NOW_MS, [3])
    with monkeypatch.context() as patched:
        patched.setattr(DeliveryHour.objects, "bulk_create", away)
        with pytest.raises(OperationalError):
            write(counts)
    counts("orders", NOW_MS + HOUR_MS, [4])
    write(counts, NOW_MS + HOUR_MS)
    assert [row[2] for row in rows()] == [0, 3600]
    counts("orders", NOW_MS + 2 * HOUR_MS, [5])
    assert counts.changed(NOW_MS + (2 + HOURS_WAITING_MAX) * HOUR_MS) == []


def test_hours_that_no_report_reads_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    for hours in (0, 49, 52):
        DeliveryHour.objects.create(group="billing", topic="orders", member="me", hour_s=HOUR_S - hours * 3600)
    monkeypatch.setattr("consumer.tasks.timezone.now", lambda: NOW + timedelta(minutes=1))
    forget_deliveries()
    assert [row[2] for row in rows()] == [-49 * 3600, 0]
