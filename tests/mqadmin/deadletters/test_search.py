"""Dead letters are found by a part of their fields or body, as far as the viewer may see bodies; not when gone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import matching_rows, search_index
from mqadmin.deadletters.masked_rows import as_regex
from mqadmin.deadletters.models import DeadLetter, SearchText
from mqadmin.deadletters.retention import remove_old
from mqadmin.deadletters.search_index import LookUp
from mqadmin.deadletters.search_texts import (
    BODY_CHARS_MAX,
    USER_PROPERTIES_MAX,
    USER_PROPERTY_CHARS_MAX,
    body_text,
    words_text,
)
from mqadmin.deadletters.selectors import DeadLetterFilter, dead_letters
from mqadmin.people.masking import read_rules
from mqadmin.people.roles import Role
from remoting.wire.properties import Property
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message

BODIES = (b'{"name": "Miller"}', "编号 abcdef 订单失败".encode(), b'100% "quoted" AND OR *', b"\xff\xfeMiller")


@pytest.fixture(autouse=True)
def _dead(prod: Cluster, now: datetime) -> None:
    reason = {Property.FAILURE_CLASS: "shop.PaymentTimeout", Property.FAILURE_TEXT: "no answer after 30 s"}
    messages = [dead_message(offset, body=body, properties=reason) for offset, body in enumerate(BODIES)]
    seed.make_dead_letters(prod, "billing", messages, now=now)


BORN_MS, DAY_MS = 1_700_000_000_000, 86_400_000


def born(day: float) -> datetime:
    """A moment after the first sending, in days."""
    return datetime.fromtimestamp(BORN_MS / 1000, UTC) + timedelta(days=day)


def found(prod: Cluster, **wanted: Any) -> list[int]:
    rows = dead_letters(prod, DeadLetterFilter(**{"role": Role.ADMIN, **wanted}))
    return [row.queue_offset for row in rows.after(None, 50)]


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("uniq1", [1]),
        ("k", [3, 2, 1, 0]),
        ("o", []),
        ("order-2 answer", [2]),
        ("after 30", [3, 2, 1, 0]),
        ("10.0.0.7", [3, 2, 1, 0]),
        ("broker-a", [3, 2, 1, 0]),
        ("Broker-A queue0 order-2", [2]),
        ("broker-b", []),
        ("queue1", []),
        ("TIMEOUT", [3, 2, 1, 0]),
        ("bill", []),
        ('"', []),
        ("* OR uniq1", []),
        ("Miller", []),
    ],
)
def test_fields_are_found_by_their_words(prod: Cluster, text: str, offsets: list[int]) -> None:
    assert found(prod, text=text) == offsets


@pytest.mark.parametrize(
    ("body", "offsets"),
    [("miller", [0]), ("订单失", [1]), ('% "quoted" and', [2]), ("AND OR *", [2]), ("100_", []), ("UNIQ1", [])],
)
def test_bodies_are_found_by_a_part_of_them(prod: Cluster, body: str, offsets: list[int]) -> None:
    assert found(prod, body=body) == offsets


def test_all_that_is_said_must_hold(prod: Cluster, now: datetime) -> None:
    assert found(prod, text="order-2", body="quoted") == [2]
    assert found(prod, text="order-1", body="quoted") == []
    assert found(prod, text="order-2", until=now - timedelta(days=9000)) == []
    assert found(prod, text="order-2", group="mail") == []
    failure_id = DeadLetter.objects.get(queue_offset=2).failure_id
    assert found(prod, body="quoted", group="billing", failure_id=failure_id) == [2]
    assert found(prod, body="Miller", failure_id=failure_id) == []
    assert found(prod, body="quoted", group="mail") == []


TENANTS = ({"tenant": "acme-EU"}, {"tenant": "acme-EU", "step": "2"}, {"step": "acme-EU"}, {"tenant": "acmeeu2"})


@pytest.fixture
def told(prod: Cluster, now: datetime) -> Cluster:
    """Four more of another group, with properties of the sender, attempts of their own, sent on four days."""
    messages = [
        dead_message(
            offset,
            properties={Property.UNIQ_KEY: f"TOLD{offset}", **TENANTS[offset - 10]},
            reconsume_times=offset - 10,
            born_timestamp_ms=BORN_MS + (offset - 10) * DAY_MS,
        )
        for offset in range(10, 14)
    ]
    seed.make_dead_letters(prod, "mail", messages, now=now)
    return prod


@pytest.mark.parametrize(
    ("wanted", "offsets"),
    [
        ({"user_property": "tenant=acme-EU"}, [11, 10]),
        ({"user_property": "TENANT=acme eu"}, [11, 10]),
        ({"user_property": "step=acme-EU"}, [12]),
        ({"user_property": "tenant=acme"}, []),
        ({"user_property": "tenant="}, []),
        ({"user_property": "tenant"}, []),
        ({"user_property": "*=acme"}, []),
        ({"user_property": f"{Property.TAGS}=paid"}, []),
        ({"user_property": "step=2", "text": "told11"}, [11]),
        ({"user_property": "step=2", "body": '"id": 11'}, [11]),
        ({"text": "acme"}, [12, 11, 10]),
        ({"text": "tenantacmeeu"}, []),
        ({"attempts": 0}, [10]),
        ({"attempts": 3, "group": "mail"}, [13]),
        ({"attempts": 3, "group": "billing"}, []),
        ({"attempts": 16}, [3, 2, 1, 0]),
        ({"attempts": 16, "body": "miller"}, [0]),
        ({"born_since": 1, "born_until": 3}, [12, 11]),
        ({"born_since": 3}, [13]),
        ({"born_until": 1}, [10, 3, 2, 1, 0]),
        ({"born_since": 1, "group": "mail", "user_property": "tenant=acme-EU"}, [11]),
        ({"born_since": 1, "attempts": 2}, [12]),
    ],
    ids=str,
)
@pytest.mark.parametrize("few", [1000, 0])
def test_attempts_properties_and_the_first_sending_are_found(
    told: Cluster, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any], offsets: list[int], few: int
) -> None:
    monkeypatch.setattr(matching_rows, "FEW", few)
    days = {name: born(value) for name, value in wanted.items() if name.startswith("born")}
    assert found(told, **(wanted | days)) == offsets


def test_what_was_first_sent_on_some_days_is_listed_by_that_time_unless_days_of_death_are_wanted(
    told: Cluster,
) -> None:
    DeadLetter.objects.filter(queue_offset=11).update(born_at=born(3.5))
    assert found(told, born_since=born(1)) == [11, 13, 12]
    rows = dead_letters(told, DeadLetterFilter(born_since=born(1)))
    first = rows.page("", size=1)
    assert [row.queue_offset for row in rows.page(first.older, size=9).rows] == [13, 12]
    assert found(told, born_since=born(1), since=born(0)) == [13, 12, 11]


def test_properties_that_are_searched_are_bounded() -> None:
    many = {f"p{number}": "x" * 500 for number in range(USER_PROPERTIES_MAX + 5)}
    words = words_text(DeadLetter(failure_id=1), {Property.UNIQ_KEY: "u", **many}).split()
    assert len([word for word in words if word.startswith("p")]) == USER_PROPERTIES_MAX
    assert max(len(word) for word in words if not word.startswith("p")) == USER_PROPERTY_CHARS_MAX


def test_what_was_indexed_before_is_found_by_attempts_and_properties(told: Cluster) -> None:
    SearchText.objects.all().delete()
    SearchText.objects.bulk_create(SearchText(dead_letter=row, words=" k ") for row in DeadLetter.objects.all())
    assert found(told, attempts=2) == []
    import_module("mqadmin.deadletters.migrations.0005_further_fields").write_words(apps, None)
    assert (found(told, attempts=2), found(told, user_property="step=acme-eu")) == ([12], [12])


def test_what_was_indexed_before_is_found_by_broker_and_queue(told: Cluster) -> None:
    """The same words as of what is indexed now, once each."""
    now = {pk: set(words.split()) for pk, words in SearchText.objects.values_list("pk", "words")}
    SearchText.objects.all().delete()
    rows = DeadLetter.objects.all()
    of_before = {row.pk: f" {' '.join(now[row.pk] - {'brokera', 'queue0'})} " for row in rows}
    SearchText.objects.bulk_create(SearchText(dead_letter=row, words=of_before[row.pk]) for row in rows)
    assert found(told, text="broker-a") == []
    for _ in range(2):
        import_module("mqadmin.deadletters.migrations.0006_broker_words").write_words(apps, None)
        assert found(told, text="broker-a queue0 told12") == [12]
        for pk, words in SearchText.objects.values_list("pk", "words"):
            assert sorted(words.split()) == sorted(now[pk])


@pytest.mark.parametrize("name", ["0005_further_fields", "0006_broker_words"])
def test_a_migration_of_words_touches_no_body_and_writes_nothing_twice(told: Cluster, name: str) -> None:
    """Bodies are most of the data; a migration that was stopped goes on where it was."""
    migration = import_module(f"mqadmin.deadletters.migrations.{name}")
    bodies = dict(SearchText.objects.values_list("pk", "body"))
    SearchText.objects.all().delete()
    SearchText.objects.bulk_create(SearchText(dead_letter_id=pk, words=" k ", body=body) for pk, body in bodies.items())
    for is_first in (True, False):
        with CaptureQueriesContext(connection) as queries:
            migration.write_words(apps, None)
        told_of = [one["sql"] for one in queries]
        assert not any('"body"' in one for one in told_of)
        assert any("SET words" in one for one in told_of) == is_first
    assert dict(SearchText.objects.values_list("pk", "body")) == bodies
    assert migration.Migration.atomic is False


def test_what_migrations_write_does_not_change_with_what_is_written_today() -> None:
    texts = import_module("mqadmin.deadletters.migrations._texts")
    dead = DeadLetter(failure_id=7, message_id="UNIQ-1", group_name="billing", keys=" order-7 ", attempt_count=3)
    words = texts.words_text(dead, {Property.UNIQ_KEY: "UNIQ-1", "tenant": "acme-eu"})
    assert words == (" uniq1 order7 billing order 7 attempts3 failure7 tenant\ue002acmeeu acmeeu acme eu ")
    assert texts.searched_body(dead, b"paid").startswith("paid\n")
    assert texts.searched_body(dead, None) == ""


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes each step as small as it can be."""
    monkeypatch.setattr(matching_rows, "LOOKED_UP_AT_FIRST", 1)
    monkeypatch.setattr(matching_rows, "LOOKED_UP_AT_ONCE", 1)
    monkeypatch.setattr(matching_rows, "FEW", 0)
    monkeypatch.setattr(search_index, "_NEWEST_COUNT", 0)
    monkeypatch.setattr(search_index, "_NEWEST_BODIES", 0)
    monkeypatch.setattr(search_index, "_FEW", 1)


@pytest.mark.usefixtures("one_by_one")
def test_a_common_text_is_looked_up_step_by_step(prod: Cluster) -> None:
    rows = dead_letters(prod, DeadLetterFilter(text="billing"))
    first = rows.page("", size=3)
    assert [row.queue_offset for row in first.rows] == [3, 2, 1]
    assert [row.queue_offset for row in rows.page(first.older, size=3).rows] == [0]
    assert found(prod, text="order-0", body="name") == [0]
    assert found(prod, body="miller") == [0]


@pytest.mark.usefixtures("one_by_one")
def test_a_page_of_what_very_many_have_ends_before_it_is_full_and_goes_on(
    prod: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching_rows, "JUDGED_MAX", 2)
    first_at = DeadLetter.objects.order_by("dead_at").values_list("dead_at", flat=True)[0]
    wanted = DeadLetterFilter(text="billing", until=first_at + timedelta(milliseconds=1))
    rows = dead_letters(prod, wanted)
    page = rows.page("")
    assert (page.rows, page.older != "", page.is_cut) == ((), True, True)
    page = rows.page(page.older)
    assert [row.queue_offset for row in page.rows] == [0]
    page = rows.page(page.older)
    assert (page.rows, page.older, page.is_cut) == ((), "", False)
    # Files and replays take all.
    assert [row.queue_offset for row in rows.after(None, 9)] == [0]


@pytest.mark.parametrize("wanted", [LookUp(("billing",)), LookUp(body="name"), LookUp(("order0",), "name")])
def test_what_was_indexed_long_ago_is_found_behind_what_is_newer(
    prod: Cluster, wanted: LookUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows in five of the ranges that PostgreSQL looks into, two in one of them."""
    first = DeadLetter.objects.get(queue_offset=0)
    texts = SearchText.objects.get(pk=first.pk)
    numbers = [first.pk + 70_000, first.pk + 70_001, first.pk + 200_000, first.pk + 500_000, first.pk + 900_000]
    DeadLetter.objects.exclude(pk=first.pk).delete()
    for number in numbers:
        first.pk, first.queue_offset = number, number
        first.save(force_insert=True)
        SearchText.objects.create(pk=number, words=texts.words, body=texts.body)
    expected = [*reversed(numbers), texts.pk]
    for newest_count, few in ((0, 1), (0, 1000), (2, 1), (10_000, 1)):
        monkeypatch.setattr(search_index, "_NEWEST_COUNT", newest_count)
        monkeypatch.setattr(search_index, "_NEWEST_BODIES", newest_count)
        monkeypatch.setattr(search_index, "_FEW", few)
        assert search_index.matching_ids(wanted, None, 9) == expected
        assert search_index.matching_ids(wanted, None, 4) == expected[:4]
        assert search_index.matching_ids(wanted, numbers[1], 9) == expected[4:]
        assert search_index.matching_ids(wanted, texts.pk, 9) == []


def test_each_range_is_looked_up_in_the_index(prod: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        return
    monkeypatch.setattr(search_index, "_NEWEST_COUNT", 0)
    with CaptureQueriesContext(connection) as asked:
        assert len(search_index.matching_ids(LookUp(("billing",)), None, 9)) == len(BODIES)
    (by_range,) = [one["sql"] for one in asked if "generate_series" in one["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {by_range}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("CREATE INDEX mq_deadletters_search_words ON mq_deadletters_searchtext (dead_letter_id)")
        search_index.install(connection)
        cursor.execute("SELECT to_regclass('mq_deadletters_search_words')")
        assert cursor.fetchone() == (None,), "an index of before is removed"
    assert re.search(r"Index Cond: .*@> ARRAY.*number\.number", plan), plan


@pytest.mark.usefixtures("one_by_one")
def test_a_look_up_leaves_the_planner_of_postgresql_as_it_was(prod: Cluster) -> None:
    """The tests run in one transaction, as writers do that look something up."""
    assert len(search_index.matching_ids(LookUp(("billing",), "name"), None, 9)) == 1
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for name in ("enable_indexscan", "enable_seqscan", "jit"):
                cursor.execute(f"SHOW {name}")
                assert cursor.fetchone() == ("on",)


def test_few_that_the_other_filters_let_through_are_compared_whatever_the_text(
    prod: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> list[int]:
        raise AssertionError("the text was looked up")

    monkeypatch.setattr(matching_rows, "matching_ids", never)
    rows = dead_letters(prod, DeadLetterFilter(text="billing"))
    first = rows.page("", size=3)
    assert [row.queue_offset for row in first.rows] == [3, 2, 1]
    assert [row.queue_offset for row in rows.page(first.older, size=3).rows] == [0]
    assert found(prod, text="order-0", body="name") == [0]
    assert found(prod, text="order-0 order-1") == []
    monkeypatch.setattr(matching_rows, "FEW", len(BODIES) - 1)
    with pytest.raises(AssertionError):
        found(prod, text="billing")


@pytest.mark.parametrize(
    ("rules", "offsets"),
    [("operator:ord*", []), ("operator:%DLQ%b?lling", []), ("operator:other*", [0]), ("viewer:*", [0])],
)
def test_a_body_that_a_role_may_not_see_is_not_found(prod: Cluster, settings: Any, rules: str, offsets: Any) -> None:
    settings.MQADMIN_MASKED = read_rules(rules)
    assert found(prod, body="Miller", role=Role.OPERATOR) == offsets
    assert found(prod, body="Miller", role=None) == []
    assert found(prod, text="UNIQ0", role=Role.VIEWER) == [0]


def test_a_pattern_with_brackets_hides_rather_too_much() -> None:
    assert (as_regex("pay.ments*"), as_regex("[!a]b")) == (r"^pay\.ments.*$", "")


def test_what_is_removed_is_not_found_any_more(prod: Cluster, now: datetime) -> None:
    assert remove_old(now) == len(BODIES)
    assert (found(prod, text="UNIQ1"), SearchText.objects.count()) == ([], 0)
    if connection.vendor == "sqlite":
        assert search_index.matching_ids(LookUp(("uniq1",)), None, 9) == []


def test_without_an_index_all_texts_are_read(prod: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "_has_index", lambda _: False)
    assert (found(prod, body="miller"), found(prod, text="uniq1")) == ([0], [1])


@pytest.mark.sqlite
def test_the_index_is_made_of_what_is_there(prod: Cluster) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE mq_deadletters_search_bodies")
        cursor.execute("DROP TRIGGER mq_deadletters_search_delete")
    search_index.install(connection)
    assert found(prod, body="Miller") == [0]
    DeadLetter.objects.all().delete()
    assert search_index.matching_ids(LookUp(body="Miller"), None, 9) == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (None, ""),
        (b"\xff", ""),
        (b"a\0b", "a\N{SYMBOL FOR NULL}b"),
        (b"x" * 50_000, "x" * BODY_CHARS_MAX),
        (("é" * 40_000).encode(), "é" * BODY_CHARS_MAX),
        (b"x" + ("\N{GRINNING FACE}" * 9000).encode(), "x" + "\N{GRINNING FACE}" * (BODY_CHARS_MAX - 1)),
    ],
)
def test_what_is_searched_of_a_body_is_text_and_bounded(body: bytes | None, text: str) -> None:
    assert body_text(body) == text
