from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from consumer.checks import check_listeners
from consumer.engine.failure_policy import BROKER_DECIDES, DEAD_LETTER
from consumer.listener import Declaration, ListenerError, Registry


def bill(message: object) -> None: ...


async def mail(message: object) -> None: ...


class Callable_:
    async def __call__(self, message: object) -> None: ...


def declaration(group: str, topic: str, tags: str, function: Callable[..., Any], **given: Any) -> Declaration:
    options: Any = {"tags": tags, **given}
    return Declaration(group, topic, function, options)


def declared(*declarations: Declaration) -> Registry:
    registry = Registry()
    for one in declarations:
        registry.declare(one)
    return registry


def frozen(*declarations: Declaration) -> Registry:
    registry = declared(*declarations)
    registry.freeze()
    _ = registry.groups
    return registry


def test_listeners_of_one_group_form_one_consumer() -> None:
    groups = frozen(
        declaration("billing", "orders", "paid || refunded", bill, threads=5),
        declaration("billing", "invoices", "*", mail, wanted_instances=3, consume_from="first"),
        declaration("mailing", "orders", "*", mail),
    ).groups
    assert list(groups) == ["billing", "mailing"]
    billing = groups["billing"]
    assert set(billing.listeners) == {"orders", "invoices"}
    options = billing.options
    assert (options["wanted_instances"], options["threads"], options["max_reconsume_times"]) == (3, 5, None)
    assert options["consume_from"] == "first"
    assert (groups["mailing"].options["wanted_instances"], groups["mailing"].options["threads"]) == (1, 20)


@pytest.mark.parametrize(("function", "is_async"), [(bill, False), (mail, True), (Callable_(), True)])
def test_async_functions_and_objects_are_told_from_sync_ones(function: Any, is_async: bool) -> None:
    groups = frozen(declaration("billing", "orders", "*", function)).groups
    assert groups["billing"].listeners["orders"].is_async == is_async


@pytest.mark.parametrize(
    ("wrong", "fault", "text"),
    [
        ({"group": None}, "consumer.E001", "bill: group is None; a text is needed"),
        ({"topic": 7}, "consumer.E001", "bill: topic is 7; a text is needed"),
        ({"cluster": None}, "consumer.E001", "bill: cluster is None; a text is needed"),
        ({"function": None}, "consumer.E007", "group 'billing' on topic 'orders' is None; a function is needed"),
        ({"topic": "%RETRY%billing"}, "consumer.E001", "'%RETRY%billing' has the group's own retries"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_no_declaration_at_all_is_named_and_the_others_are_judged(
    wrong: dict[str, Any], fault: str, text: str
) -> None:
    registry = Registry()
    registry.declare(Declaration(**{"group": "billing", "topic": "orders", "function": bill, **wrong}))
    registry.declare(declaration("mailing", "or/ders", "*", mail))
    registry.freeze()
    assert [one.id for one in registry.faults] == [fault, "consumer.E001"]
    assert text in registry.faults[0].text
    assert "or/ders" in registry.faults[1].text


def test_saying_the_same_twice_is_no_contradiction() -> None:
    frozen(
        declaration("billing", "orders", "*", bill, wanted_instances=2),
        declaration("billing", "invoices", "*", bill, wanted_instances=2),
    )


@pytest.mark.parametrize(
    ("declarations", "text"),
    [
        pytest.param(
            [declaration("billing", "orders", "paid", bill), declaration("billing", "orders", "created", mail)],
            "group 'billing' listens twice to topic 'orders': .*bill and .*mail",
            id="one topic twice",
        ),
        pytest.param(
            [
                declaration("billing", "orders", "*", bill, wanted_instances=2),
                declaration("billing", "invoices", "*", mail, wanted_instances=3),
            ],
            "group 'billing' has two values of wanted_instances: 2 in .*bill and 3 in .*mail",
            id="two numbers of instances",
        ),
        pytest.param(
            [
                declaration("billing", "orders", "*", bill, consume_from="last"),
                declaration("billing", "invoices", "*", mail, consume_from="first"),
            ],
            "two values of consume_from",
            id="two starts",
        ),
        pytest.param([declaration("billing", "orders", " || ", bill)], "bill: .*names no tag", id="no tag"),
        pytest.param(
            [declaration("bil ling", "orders", "*", bill)], "group name 'bil ling'", id="a blank in the group"
        ),
        pytest.param([declaration("billing", "or/ders", "*", bill)], "topic name 'or/ders'", id="a slash in the topic"),
        pytest.param(
            [declaration("billing", "orders", "*", bill, threads=0)], "threads is 0; .*1 to 1000", id="threads"
        ),
        pytest.param(
            [declaration("billing", "orders", "*", bill, wanted_instances=-1)], "wanted_instances is -1", id="instances"
        ),
        pytest.param(
            [declaration("billing", "orders", "*", bill, consume_from="newest")],
            "consume_from is 'newest'; .*is needed",
            id="start word",
        ),
        pytest.param(
            [declaration("billing", "orders", "*", bill, consume_from=datetime(2026, 1, 1))],
            "with its time zone is needed",
            id="start without zone",
        ),
    ],
)
def test_contradictions_and_illegal_names_are_refused(declarations: list[Declaration], text: str) -> None:
    with pytest.raises(ListenerError, match=text):
        frozen(*declarations)


def yielding(message: object) -> Iterator[object]:
    yield message


def two(message: object, more: object) -> None: ...


@pytest.mark.parametrize(
    ("declared", "fault_id"),
    [
        pytest.param([declaration("%bad?", "orders", "*", bill)], "E001", id="name"),
        pytest.param(
            [declaration("billing", "orders", "*", bill), declaration("billing", "orders", "*", mail)],
            "E002",
            id="twice",
        ),
        pytest.param(
            [
                declaration("billing", "orders", "*", bill, orderly=True),
                declaration("billing", "invoices", "*", mail, orderly=False),
            ],
            "E003",
            id="in order here, at once there",
        ),
        pytest.param([declaration("billing", "orders", "*", bill, threads=0)], "E004", id="value"),
        pytest.param([declaration("billing", "orders", "*", bill, body=print)], "E006", id="body type"),
        pytest.param([declaration("billing", "orders", "*", yielding)], "E007", id="generator"),
        pytest.param([declaration("billing", "orders", "*", two)], "E007", id="two arguments"),
        pytest.param([declaration("billing", "orders", "*", bill, time_limit_s=3)], "E007", id="needs async"),
        pytest.param([Declaration("billing", "orders", bill, cluster="nowhere")], "E009", id="cluster"),
    ],
)
def test_each_kind_of_fault_has_the_id_of_its_system_check(declared: list[Declaration], fault_id: str) -> None:
    registry = Registry()
    for one in declared:
        registry.declare(one)
    registry.freeze()
    assert [fault.id for fault in registry.faults] == [f"consumer.{fault_id}"]
    assert [(error.id, error.msg) for error in check_listeners(registry)] == [
        (fault.id, fault.text) for fault in registry.faults
    ]


def test_callables_that_say_nothing_of_their_arguments_are_taken() -> None:
    frozen(declaration("billing", "orders", "*", max))


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(ListenerError) as caught:
        frozen(
            declaration("billing", "orders", "||", bill, threads=0),
            declaration("mailing", "orders", "*", mail, wanted_instances=-1),
        )
    assert len(str(caught.value).splitlines()) == 3


def test_a_start_may_be_a_datetime() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    groups = frozen(declaration("billing", "orders", "*", bill, consume_from=moment)).groups
    assert groups["billing"].options["consume_from"] == moment


def test_a_listener_says_how_many_messages_it_takes_and_what_becomes_of_those_that_fail() -> None:
    registry = Registry()
    given: Any = {"batch_size": 8, "dead_letter_on": KeyError, "retry_delays_s": {OSError: 60}}
    registry.declare(Declaration("billing", "orders", print, given))
    registry.freeze()
    declared = registry.groups["billing"].listeners["orders"]
    assert declared.batch_size == 8
    errors = (KeyError("sku"), ConnectionResetError(), ValueError())
    assert [declared.failures.delay_level(error) for error in errors] == [DEAD_LETTER, 5, BROKER_DECIDES]


def test_a_listener_declared_after_the_start_is_refused() -> None:
    registry = frozen()
    with pytest.raises(ListenerError, match="declared after the start"):
        registry.declare(declaration("billing", "orders", "*", bill))


def test_the_groups_are_not_known_before_the_start() -> None:
    with pytest.raises(RuntimeError, match="only after Django has started"):
        _ = declared().groups


def test_the_same_group_on_two_clusters_is_two_consumers() -> None:
    registry = declared(
        Declaration("billing", "orders", bill, {"wanted_instances": 2}),
        Declaration("billing", "orders", mail, {"wanted_instances": 3}, cluster="payments"),
    )
    registry.freeze(clusters=["payments"])
    found = {key: (spec.cluster, spec.group, spec.options["wanted_instances"]) for key, spec in registry.groups.items()}
    assert found == {"billing": ("", "billing", 2), "billing@payments": ("payments", "billing", 3)}


def test_a_cluster_that_the_settings_do_not_name_is_refused_with_those_that_they_name() -> None:
    registry = declared(Declaration("billing", "orders", bill, cluster="paymets"))
    registry.freeze(clusters=["payments", "stock"])
    with pytest.raises(ListenerError, match=r"bill: the cluster 'paymets' .* names: payments, stock"):
        _ = registry.groups
