from __future__ import annotations

import logging
import uuid
from typing import Any

import pytest

from consumer.hosting import loops_worker
from consumer.hosting.declared import Difference, declared, differences, differences_now, write_down
from consumer.hosting.leases import Worker
from consumer.listener import Declaration, GroupSpec, Registry
from tests.support.logged import lines_of

LOGGER = "consumer.hosting.declared"


def bill(message: object) -> None: ...


def specs(**options: Any) -> dict[str, GroupSpec]:
    registry = Registry()
    registry.declare(Declaration("billing", "orders", bill, {"tags": "paid", **options}))
    registry.declare(Declaration("billing", "invoices", bill))
    registry.freeze()
    return dict(registry.groups)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "invoices (*), orders (paid)"),
        ({"orderly": True}, "invoices (*), orders (paid), in order"),
        ({"broadcasting": True}, "invoices (*), orders (paid), broadcasting"),
        ({"tags": "*", "sql": "a > 1"}, "invoices (*), orders (a > 1)"),
        ({"strategy": "AVG_BY_CIRCLE"}, "invoices (*), orders (paid), strategy AVG_BY_CIRCLE"),
        ({"threads": 3, "wanted_instances": 7}, "invoices (*), orders (paid)"),
    ],
)
def test_what_all_members_must_have_in_common_is_a_text(options: dict[str, Any], text: str) -> None:
    assert declared(specs(**options)) == {"billing": text}


def test_a_strategy_of_their_own_is_named() -> None:
    assert declared(specs(strategy=bill))["billing"].endswith(f"strategy {__name__}.bill")


def test_workers_with_the_same_code_do_not_differ() -> None:
    assert differences({"one": {"billing": "orders (*)"}, "two": {"billing": "orders (*)"}}) == []
    assert differences({}) == []


def test_a_difference_names_the_workers_of_each_text_most_first() -> None:
    found = differences(
        {
            "one": {"billing": "orders (paid)", "mailing": "orders (*)"},
            "two": {"billing": "orders (*)", "mailing": "orders (*)"},
            "three": {"billing": "orders (*)"},
        }
    )
    assert found == [
        Difference("billing", {"orders (*)": ("three", "two"), "orders (paid)": ("one",)}),
        Difference("mailing", {"orders (*)": ("one", "two"), "": ("three",)}),
    ]
    assert str(found[1]) == "group mailing is declared differently: orders (*) on one, two; nothing on three"


@pytest.mark.django_db
def test_a_worker_whose_code_differs_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    workers = [Worker(f"loops-{number}@here", uuid.uuid4()) for number in range(3)]
    for worker in workers:
        loops_worker.register(worker, slots=4)
    write_down(workers[0], specs())
    write_down(workers[1], specs())
    assert lines_of(caplog, LOGGER) == []
    with caplog.at_level(logging.WARNING):
        write_down(workers[2], specs(tags="*"))
    assert lines_of(caplog, LOGGER) == [
        "group billing is declared differently: invoices (*), orders (paid) on loops-0@here, loops-1@here;"
        " invoices (*), orders (*) on loops-2@here; deploy the same code to all of them"
    ]
    loops_worker.mark_stopping(workers[2])
    assert differences_now() == []


@pytest.mark.django_db
def test_new_code_on_all_workers_is_no_difference_while_they_start_one_after_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nodes = ["loops-1@here", "loops-2@here"]
    for code in ({"tags": "*"}, {}):
        workers = [Worker(node, uuid.uuid4()) for node in nodes]
        for worker in workers:
            loops_worker.register(worker, slots=4)
        for worker in workers:
            write_down(worker, specs(**code))
    assert lines_of(caplog, LOGGER) == []
