from __future__ import annotations

import re
from typing import Any, get_type_hints

import pytest

from consumer import listener
from consumer.listener import Declaration, ListenerError, Registry
from consumer.options import OPTIONS, GroupOptions, ListenerOptions, Option, Scope, number, one_of


def bill(message: object) -> None: ...


def mail(message: object) -> None: ...


async def bill_async(message: object) -> None: ...


@pytest.mark.parametrize(
    ("scope", "typed"), [(Scope.LISTENER, ListenerOptions), (Scope.GROUP, GroupOptions)], ids=["listener", "group"]
)
def test_each_row_has_a_typed_field_and_each_field_a_row(scope: Scope, typed: type[Any]) -> None:
    assert {row.name for row in OPTIONS.values() if row.scope is scope} == set(get_type_hints(typed))


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_each_default_passes_its_own_check(option: Option) -> None:
    assert option.check(option.default) == ""


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_what_an_option_contradicts_is_an_option(option: Option) -> None:
    assert set(option.not_with) <= set(OPTIONS)


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        pytest.param(number(1, 5), [1, 5], [0, 6, "3", 2.0, True, None], id="number"),
        pytest.param(one_of(True, False), [True, False], [0, 1, "yes", None], id="yes or no"),
        pytest.param(one_of("first", "last"), ["first"], ["First", b"first", None, []], id="words"),
        pytest.param(
            OPTIONS["dead_letter_on"].check,
            [(), ValueError, (KeyError, OSError)],
            ["ValueError", (ValueError, "KeyError"), ValueError("x"), None],
            id="exceptions",
        ),
        pytest.param(
            OPTIONS["retry_delays_s"].check,
            [{}, {OSError: 60, KeyError: 0.5}],
            [{"OSError": 60}, {OSError: 0}, {OSError: "60"}, {OSError: None}, [OSError], None],
            id="delays",
        ),
        pytest.param(OPTIONS["queues_changed"].check, [None, print], [bill_async, "print"], id="a function to call"),
    ],
)
def test_a_check_says_what_is_needed(check: Any, right: list[Any], wrong: list[Any]) -> None:
    assert [check(value) for value in right] == [""] * len(right)
    assert all("needed" in check(value) for value in wrong)


def test_an_option_that_does_not_exist_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(TypeError, match=r"no option 'thread'; did you mean 'threads'\?"):
        listener(group="billing", topic="orders", thread=3)(bill)  # type: ignore[call-arg]


@pytest.mark.parametrize("order", [1, -1], ids=["the listener's first", "the group's first"])
def test_two_options_that_contradict_each_other_name_both_declarations(order: int) -> None:
    rows = [
        Option("alone", Scope.LISTENER, False, one_of(True, False), {"threads": "one at a time"}),
        Option("slow", Scope.GROUP, False, one_of(True, False), {"alone": "nobody waits"}),
    ]
    given: list[Any] = [{"alone": True}, {"threads": 5, "slow": True}]
    registry = Registry({**OPTIONS, **{row.name: row for row in rows}})
    for topic, function, options in list(zip(["orders", "invoices"], [bill, mail], given, strict=True))[::order]:
        registry.declare(Declaration("billing", topic, function, options))
    registry.freeze()
    where = __name__
    assert [fault.text for fault in registry.faults] == [
        f"group 'billing': alone=True in {where}.bill contradicts threads=5 in {where}.mail: one at a time",
        f"group 'billing': slow=True in {where}.mail contradicts alone=True in {where}.bill: nobody waits",
    ]
    with pytest.raises(ListenerError, match=r"\(consumer.E005\) group 'billing': alone=True"):
        _ = registry.groups


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"suspend_ms": 500}, "suspend_ms=500 in .*bill does nothing with orderly=False: only in order"),
        ({"trace_topic": "traces"}, "trace_topic='traces' in .*bill does nothing with trace=False"),
        ({"retry_delays_s": {OSError: 5}, "broadcasting": True}, "retry_delays_s=.* contradicts broadcasting=True"),
        ({"max_reconsume_times": 3, "broadcasting": True}, "max_reconsume_times=3 .* contradicts broadcasting=True"),
        ({"consume_concurrently_max_span": 9, "orderly": True}, "max_span=9 in .* contradicts orderly=True in .*bill"),
    ],
    ids=lambda value: " and ".join(value) if isinstance(value, dict) else "",
)
def test_an_option_that_would_do_nothing_is_refused(given: Any, text: str) -> None:
    registry = Registry()
    registry.declare(Declaration("billing", "orders", bill, given))
    registry.freeze()
    assert [fault.id for fault in registry.faults] == ["consumer.E005"]
    assert re.search(text, registry.faults[0].text)


@pytest.mark.parametrize(
    "given", [{"suspend_ms": 500, "orderly": True}, {"trace_topic": "traces", "trace": True}, {"suspend_ms": 1000}]
)
def test_an_option_with_what_it_needs_is_right(given: Any) -> None:
    registry = Registry()
    registry.declare(Declaration("billing", "orders", bill, given))
    registry.freeze()
    assert registry.faults == ()


def test_an_option_given_with_its_default_contradicts_nothing() -> None:
    row = Option("alone", Scope.LISTENER, False, one_of(True, False), {"threads": "one at a time"})
    given: Any = {"alone": True, "threads": 20}
    registry = Registry({**OPTIONS, "alone": row})
    registry.declare(Declaration("billing", "orders", bill, given))
    registry.freeze()
    assert registry.groups["billing"].options["threads"] == 20
