"""The chain of entries: nothing is changed or taken out unseen, whichever database keeps it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from mqadmin.audit import chain, triggers
from mqadmin.audit.chain import HASHED, Head
from mqadmin.audit.models import AuditCut, AuditEntry

pytestmark = pytest.mark.django_db

Write = Callable[..., AuditEntry]


def tamper(statement: str) -> None:
    """Changes the database as somebody would who may drop triggers."""
    triggers.drop(connection)
    with connection.cursor() as cursor:
        cursor.execute(statement)
    triggers.install(connection)


def test_each_entry_holds_the_hash_of_the_one_before(write: Write) -> None:
    first, second = write(), write()
    assert (first.number, first.previous_hash) == (1, "")
    assert (second.number, second.previous_hash) == (2, first.hash)
    report = chain.check()
    assert (report.fault, report.checked_count, report.head) == ("", 2, Head(2, second.hash))


@pytest.mark.parametrize(
    "values",
    [
        {"offset": 2**53 - 1, "huge": 1e16, "small": 0.1, "whole": 2.0, "negative": -5},
        {"text": "名 \u202e <b> é", "nothing": None, "no": False, "list": [1, [2, {"b": 1, "a": 2}]], "empty": {}},
    ],
)
def test_an_entry_is_the_same_after_the_database_had_it(write: Write, values: dict[str, Any]) -> None:
    write(before=values, arguments=values, items=[{"item": "a", "state": "done", "words": ""}])
    assert chain.check().fault == ""


def test_every_column_is_hashed() -> None:
    columns = {field.attname for field in AuditEntry._meta.concrete_fields}
    assert set(HASHED) == columns - {"id", "hash"}


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("UPDATE mq_audit_auditentry SET actor = 'eve' WHERE number = 2", 2),
        ("UPDATE mq_audit_auditentry SET outcome = 'refused' WHERE number = 3", 3),
        ("DELETE FROM mq_audit_auditentry WHERE number = 2", 3),
        ("DELETE FROM mq_audit_auditentry WHERE number = 1", 2),
    ],
)
def test_what_was_changed_or_taken_out_is_named(write: Write, statement: str, number: int) -> None:
    for _ in range(3):
        write()
    tamper(statement)
    report = chain.check()
    assert report.broken == number
    assert str(number) in report.fault


def test_a_chain_that_was_made_with_another_key_is_no_chain_of_ours(write: Write, settings: Any) -> None:
    write()
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another key than the one before"
    assert chain.check().broken == 1
    settings.SECRET_KEY_FALLBACKS = [old]
    assert chain.check().fault == ""


def test_an_end_that_was_cut_off_shows_by_a_head_that_was_noted(write: Write) -> None:
    write()
    noted = Head(2, write().hash)
    tamper("DELETE FROM mq_audit_auditentry WHERE number = 2")
    assert chain.check().fault == ""
    assert chain.check(noted).broken == 2
    write(actor="eve")
    assert chain.check(noted).broken == 2


@pytest.mark.parametrize("table", ["mq_audit_auditentry", "mq_audit_auditcut"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET hash = ''", "DELETE FROM {}"])
def test_the_database_refuses_to_change_it(write: Write, table: str, statement: str) -> None:
    for days in (90, 80, 0):
        write(at=timezone.now() - timedelta(days=days))
    chain.cut_before(timezone.now() - timedelta(days=85))
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement.format(table))
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        AuditEntry.objects.all().delete()
    assert AuditEntry.objects.count() == 2


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("mq_audit_auditentry", "id"),
        ("mq_audit_auditentry", "number"),
        ("mq_audit_auditentry", "run"),
        ("mq_audit_auditcut", "through"),
    ],
)
def test_no_row_comes_in_the_place_of_another(write: Write, table: str, column: str) -> None:
    """REPLACE would take away each row that has a value of the new one, and ask no trigger of DELETE."""
    write(at=timezone.now() - timedelta(days=90))
    chain.cut_before(timezone.now() - timedelta(days=85))
    write()
    read = f"SELECT * FROM {table}"  # noqa: S608 - names of tables
    with connection.cursor() as cursor:
        cursor.execute(read)
        (row,) = cursor.fetchall()
        names = [one[0] for one in cursor.description]
        other = {"id": 9, "number": 9, "run": "0" * 32, "through": 9, "hash": "f" * 64}
        values = [value if name == column else other.get(name, value) for name, value in zip(names, row, strict=True)]
        marks = ", ".join(["%s"] * len(values))
        replace = f"REPLACE INTO {table} VALUES ({marks})"  # noqa: S608 - names of tables
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            cursor.execute(replace, values)
        cursor.execute(read)
        assert cursor.fetchall() == [row]


def test_a_missing_trigger_is_a_fault(write: Write) -> None:
    write()
    triggers.drop(connection)
    assert "does not refuse changes" in chain.check().fault
    triggers.install(connection)
    assert chain.check().fault == ""


@pytest.fixture
def aged(write: Write) -> list[AuditEntry]:
    """Five entries, from 100 days old to new."""
    now = timezone.now()
    return [write(at=now - timedelta(days=days)) for days in (100, 80, 60, 40, 0)]


def test_a_cut_leaves_where_it_was_made_and_the_chain_goes_on(aged: list[AuditEntry], write: Write) -> None:
    cut = chain.cut_before(timezone.now() - timedelta(days=50))
    assert cut is not None
    assert (cut.through, cut.hash, cut.removed_count) == (3, aged[2].hash, 3)
    assert list(AuditEntry.objects.order_by("number").values_list("number", flat=True)) == [4, 5]
    assert write().number == 6
    report = chain.check()
    assert (report.fault, report.checked_count) == ("", 3)
    second = chain.cut_before(timezone.now() - timedelta(days=30))
    assert second is not None
    assert (second.through, second.removed_count) == (4, 1)
    assert chain.check().fault == ""


def test_after_all_is_removed_the_chain_goes_on_from_the_cut(aged: list[AuditEntry], write: Write) -> None:
    chain.cut_before(timezone.now() + timedelta(days=1))
    assert not AuditEntry.objects.exists()
    assert chain.check().head == Head(5, aged[4].hash)
    assert write().number == 6
    assert chain.check().fault == ""


def test_a_cut_without_our_signature_is_a_fault(aged: list[AuditEntry]) -> None:
    now = timezone.now()
    AuditCut.objects.create(
        through=2, hash=aged[1].hash, removed_count=2, first_at=now, last_at=now, at=now, signature="0" * 64
    )
    AuditEntry.objects.filter(number__lte=2).delete()
    assert "not signed" in chain.check().fault


def test_nothing_so_old_leaves_no_cut(aged: list[AuditEntry]) -> None:
    assert chain.cut_before(datetime(2000, 1, 1, tzinfo=UTC)) is None
    assert not AuditCut.objects.exists()


def test_the_command_says_the_head_and_names_what_is_broken(write: Write) -> None:
    entry = write()
    out = StringIO()
    call_command("audit", "check", stdout=out)
    assert f"head 1:{entry.hash}" in out.getvalue()
    call_command("audit", "check", "--head", f"1:{entry.hash}", stdout=out)
    tamper("UPDATE mq_audit_auditentry SET subject = 'other'")
    with pytest.raises(CommandError, match="Entry 1"):
        call_command("audit", "check", stdout=out)


@pytest.mark.django_db(transaction=True)
def test_writers_at_the_same_moment_stand_in_line(write: Write) -> None:
    threads_count, entries_each = 6, 5
    start = threading.Barrier(threads_count)

    def work() -> None:
        start.wait()
        try:
            for _ in range(entries_each):
                with transaction.atomic():
                    write()
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(threads_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = chain.check()
    assert (report.fault, report.checked_count) == ("", threads_count * entries_each)
