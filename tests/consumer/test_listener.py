from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from consumer.engine.start_position import ConsumeFrom
from consumer.listener import Declaration, ListenerError, Registry


def bill(message: object) -> None: ...


async def mail(message: object) -> None: ...


class Callable_:
    async def __call__(self, message: object) -> None: ...


def declared(*declarations: Declaration) -> Registry:
    registry = Registry()
    for declaration in declarations:
        registry.declare(declaration)
    return registry


def frozen(*declarations: Declaration) -> Registry:
    registry = declared(*declarations)
    registry.freeze()
    return registry


def test_listeners_of_one_group_form_one_consumer() -> None:
    groups = frozen(
        Declaration("billing", "orders", "paid || refunded", bill, threads=5),
        Declaration("billing", "invoices", "*", mail, wanted_instances=3, consume_from="first"),
        Declaration("mailing", "orders", "*", mail),
    ).groups
    assert list(groups) == ["billing", "mailing"]
    billing = groups["billing"]
    assert set(billing.listeners) == {"orders", "invoices"}
    assert (billing.wanted_instances, billing.threads, billing.max_reconsume_times) == (3, 5, 16)
    assert billing.start.consume_from is ConsumeFrom.FIRST
    assert (groups["mailing"].wanted_instances, groups["mailing"].threads) == (1, 20)


@pytest.mark.parametrize(("function", "is_async"), [(bill, False), (mail, True), (Callable_(), True)])
def test_async_functions_and_objects_are_told_from_sync_ones(function: Any, is_async: bool) -> None:
    groups = frozen(Declaration("billing", "orders", "*", function)).groups
    assert groups["billing"].listeners["orders"].is_async == is_async


def test_saying_the_same_twice_is_no_contradiction() -> None:
    frozen(
        Declaration("billing", "orders", "*", bill, wanted_instances=2),
        Declaration("billing", "invoices", "*", bill, wanted_instances=2),
    )


@pytest.mark.parametrize(
    ("declarations", "text"),
    [
        pytest.param(
            [Declaration("billing", "orders", "paid", bill), Declaration("billing", "orders", "created", mail)],
            "group 'billing' listens twice to topic 'orders': .*bill and .*mail",
            id="one topic twice",
        ),
        pytest.param(
            [
                Declaration("billing", "orders", "*", bill, wanted_instances=2),
                Declaration("billing", "invoices", "*", mail, wanted_instances=3),
            ],
            "group 'billing' has two values of wanted_instances: 2 in .*bill and 3 in .*mail",
            id="two numbers of instances",
        ),
        pytest.param(
            [
                Declaration("billing", "orders", "*", bill, consume_from="last"),
                Declaration("billing", "invoices", "*", mail, consume_from="first"),
            ],
            "two values of consume_from",
            id="two starts",
        ),
        pytest.param([Declaration("billing", "orders", " || ", bill)], "bill: .*names no tag", id="no tag"),
        pytest.param(
            [Declaration("bil ling", "orders", "*", bill)], "group name 'bil ling'", id="a blank in the group"
        ),
        pytest.param([Declaration("billing", "or/ders", "*", bill)], "topic name 'or/ders'", id="a slash in the topic"),
        pytest.param(
            [Declaration("billing", "orders", "*", bill, threads=0)], "threads is 0; .*1 to 1000", id="threads"
        ),
        pytest.param(
            [Declaration("billing", "orders", "*", bill, wanted_instances=-1)], "wanted_instances is -1", id="instances"
        ),
        pytest.param(
            [Declaration("billing", "orders", "*", bill, consume_from="newest")],
            "consume_from='newest'",
            id="start word",
        ),
        pytest.param(
            [Declaration("billing", "orders", "*", bill, consume_from=datetime(2026, 1, 1))],
            "no time zone",
            id="start without zone",
        ),
    ],
)
def test_contradictions_and_illegal_names_are_refused(declarations: list[Declaration], text: str) -> None:
    with pytest.raises(ListenerError, match=text):
        frozen(*declarations)


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(ListenerError) as caught:
        frozen(
            Declaration("billing", "orders", "||", bill, threads=0),
            Declaration("mailing", "orders", "*", mail, wanted_instances=-1),
        )
    assert len(str(caught.value).splitlines()) == 3


def test_a_start_may_be_a_datetime() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    groups = frozen(Declaration("billing", "orders", "*", bill, consume_from=moment)).groups
    assert groups["billing"].start.timestamp_ms == int(moment.timestamp() * 1000)


def test_a_listener_declared_after_the_start_is_refused() -> None:
    registry = frozen()
    with pytest.raises(ListenerError, match="declared after the start"):
        registry.declare(Declaration("billing", "orders", "*", bill))


def test_the_groups_are_not_known_before_the_start() -> None:
    with pytest.raises(RuntimeError, match="only after Django has started"):
        _ = declared().groups
