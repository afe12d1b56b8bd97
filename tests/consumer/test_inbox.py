from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from consumer import Message
from consumer.assembly import make_consumer
from consumer.checks import check_databases
from consumer.inbox import PORTION_ROWS, databases, forget
from consumer.listener import Declaration, GroupSpec, Registry
from consumer.models import ConsumedMessage
from consumer.tasks import forget_consumed


def spec(function: Callable[[Message], Any], group: str = "billing", **options: Any) -> GroupSpec:
    registry = Registry()
    given: Any = {"once": True, **options}
    registry.declare(Declaration(group, "orders", function, given))
    registry.freeze()
    return registry.groups[group]


def consuming(function: Callable[[Message], Any], group: str = "billing") -> Callable[[Message], Any]:
    return make_consumer(spec(function, group), "127.0.0.1:9876").listeners["orders"].call


def message(key: str = "AC11") -> Message:
    return Message(topic="orders", body=b"17", id=key)


@pytest.mark.django_db(transaction=True)
def test_a_message_that_comes_twice_is_consumed_once_by_each_group() -> None:
    seen: list[str] = []
    billing = consuming(lambda message: seen.append("billed"))
    mailing = consuming(lambda message: seen.append("mailed"), "mailing")
    for consume in (billing, mailing, billing, mailing):
        consume(message())
    billing(message("AC12"))
    assert seen == ["billed", "mailed", "billed"]


@pytest.mark.django_db(transaction=True)
def test_a_listener_that_raises_leaves_neither_its_changes_nor_the_key() -> None:
    is_broken = True

    def book(message: Message) -> None:
        User.objects.create(username=message.text)
        if is_broken:
            raise ZeroDivisionError

    consume = consuming(book)
    with pytest.raises(ZeroDivisionError):
        consume(message())
    assert (User.objects.count(), ConsumedMessage.objects.count()) == (0, 0)
    is_broken = False
    consume(message())
    consume(message())
    assert (User.objects.count(), ConsumedMessage.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_an_error_of_the_database_in_the_listener_is_no_message_consumed_before() -> None:
    User.objects.create(username="17")

    def book(message: Message) -> None:
        User.objects.create(username=message.text)

    with pytest.raises(Exception, match=r"(?i)unique"):
        consuming(book)(message())
    assert not ConsumedMessage.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_instances_with_the_same_message_one_consumes_it() -> None:
    seen: list[str] = []
    consume = consuming(lambda message: seen.append(message.id))
    errors: list[BaseException] = []

    def instance() -> None:
        try:
            for number in range(20):
                consume(message(str(number)))
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=instance) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(seen, key=int) == [str(number) for number in range(20)]


@pytest.mark.django_db
def test_a_message_without_an_id_cannot_be_told_from_others() -> None:
    with pytest.raises(ValueError, match="no id to be consumed once by"):
        consuming(print)(message(""))


@pytest.mark.django_db
def test_old_keys_are_forgotten_and_young_ones_kept(settings: Any) -> None:
    now = timezone.now()
    ages = [timedelta(days=8)] * (PORTION_ROWS + 1) + [timedelta(days=6)]
    ConsumedMessage.objects.bulk_create(
        ConsumedMessage(group="billing", key=str(number), consumed_at=now - age) for number, age in enumerate(ages)
    )
    assert forget(now - timedelta(days=7), "default") == PORTION_ROWS + 1
    assert ConsumedMessage.objects.count() == 1


@pytest.mark.django_db
def test_beats_task_forgets_in_the_databases_that_listeners_use(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.CONSUMER_ONCE_DAYS = 2
    registry = Registry()
    registry.declare(Declaration("billing", "orders", print, {"once": True}))
    registry.freeze()
    monkeypatch.setattr("consumer.tasks.registry", registry)
    ConsumedMessage.objects.create(group="billing", key="old", consumed_at=timezone.now() - timedelta(days=3))
    ConsumedMessage.objects.create(group="billing", key="young")
    forget_consumed()
    assert list(ConsumedMessage.objects.values_list("key", flat=True)) == ["young"]


def test_each_database_that_listeners_record_in_is_known() -> None:
    assert databases([spec(print), spec(print, once="accounts"), spec(print, once=False)]) == {"default", "accounts"}


def test_a_database_that_the_settings_do_not_name_is_a_fault() -> None:
    registry = Registry()
    registry.declare(Declaration("billing", "orders", print, {"once": "nowhere"}))
    registry.freeze()
    (error,) = check_databases(registry)
    assert (error.id, "once='nowhere' names no database" in error.msg) == ("consumer.E010", True)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        pytest.param({"once": 3}, "once is 3; True, or the name", id="number"),
        pytest.param(
            {"once": True, "broadcasting": True}, "once=True .* contradicts broadcasting=True", id="broadcast"
        ),
    ],
)
def test_a_wrong_use_is_refused(options: Any, reason: str) -> None:
    registry = Registry()
    registry.declare(Declaration("billing", "orders", print, options))
    registry.freeze()
    (fault,) = registry.faults
    assert re.search(reason, fault.text)


def test_an_async_listener_has_no_transaction_to_record_in() -> None:
    async def listen(message: Message) -> None: ...

    registry = Registry()
    registry.declare(Declaration("billing", "orders", listen, {"once": True}))
    registry.freeze()
    assert [fault.text.partition("once")[2] for fault in registry.faults] == [
        "=True needs a plain function: no transaction spans an `await`"
    ]
