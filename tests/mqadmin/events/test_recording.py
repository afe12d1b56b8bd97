"""Events are recorded after the commit, numbered in order, and the oldest are forgotten."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from mqadmin.events import recording
from mqadmin.events.kinds import EventKind, NewEvent
from mqadmin.events.models import Event
from mqadmin.events.recording import record, record_after_commit
from mqadmin.events.selectors import Window, window

pytestmark = pytest.mark.django_db(transaction=True)


def new(number: int = 0) -> NewEvent:
    return NewEvent(EventKind.VERDICT, "prod", f"g{number}", timezone.now(), {"verdict": "slow"})


def test_event_waits_for_the_commit() -> None:
    with transaction.atomic():
        record_after_commit([new()])
        assert not Event.objects.exists()
    assert Event.objects.get().data == {"verdict": "slow"}


def test_event_of_a_transaction_that_is_undone_is_not_recorded() -> None:
    with transaction.atomic():
        record_after_commit([new()])
        transaction.set_rollback(True)
    assert not Event.objects.exists()


def test_numbers_grow_and_are_visible_in_their_order_also_from_several_writers() -> None:
    """A reader that goes on after the last number that it saw must find every event once."""

    def write(writer: int) -> None:
        try:
            for number in range(20):
                record([new(writer * 100 + number)])
        finally:
            connection.close()

    seen: list[str] = []
    last = 0
    with ThreadPoolExecutor(4) as writers:
        writing = [writers.submit(write, writer) for writer in range(4)]
        while len(seen) < 80 and not (all(one.done() for one in writing) and len(seen) == Event.objects.count()):
            for pk, group in Event.objects.filter(pk__gt=last).order_by("pk").values_list("pk", "group_name"):
                seen.append(group)
                last = pk
    [one.result() for one in writing]
    assert len(seen) == len(set(seen)) == 80


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "EVENTS_KEPT", 30)
    monkeypatch.setattr(recording, "TRIMMED_EVERY", 10)
    for number in range(10):
        record([new(number * 10 + each) for each in range(10)])
    assert 30 <= Event.objects.count() < 30 + 2 * 10
    assert window().last_id - window().oldest_id + 1 == Event.objects.count()


def test_a_database_that_refuses_costs_the_events_and_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise DatabaseError("disk full")

    monkeypatch.setattr(Event.objects, "bulk_create", refuse)
    record([new()])
    assert "1 events were not recorded: disk full" in caplog.text


@pytest.mark.parametrize(
    ("after", "is_gap"),
    [(9, False), (10, False), (30, False), (8, True), (0, True), (31, True)],
)
def test_gap_is_what_is_gone_or_was_never_there(after: int, is_gap: bool) -> None:
    assert Window(10, 30).has_gap_after(after) is is_gap


def test_nothing_recorded_yet_is_no_gap() -> None:
    assert not window().has_gap_after(0)
