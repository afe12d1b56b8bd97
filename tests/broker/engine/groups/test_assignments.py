"""Who pulls which queue, as observed."""

from __future__ import annotations

import pytest

from broker.engine.groups.assignments import Assignments
from tests.support.manual_clock import ManualClock


@pytest.fixture
def told() -> list:
    return []


@pytest.fixture
def assignments(told) -> Assignments:
    return Assignments(ManualClock(5), lambda key, before, after: told.append((key, before, after)))


def readers(assignments) -> dict:
    return {(topic, queue): held.client_id for topic, queue, held in assignments.of_group("billing")}


def test_the_first_reader_and_each_change_are_told_once(assignments, told) -> None:
    for client in ("a", "a", "b", "b"):
        assignments.pulled("billing", "orders", 0, client)
    key = ("billing", "orders", 0)
    assert told == [(key, "", "a"), (key, "a", "b")]
    assert readers(assignments) == {("orders", 0): "b"}


def test_a_queue_whose_reader_left_has_none_until_somebody_pulls_it(assignments, told) -> None:
    assignments.pulled("billing", "orders", 0, "a")
    assignments.pulled("billing", "orders", 1, "b")
    assignments.left("billing", "a")
    assert readers(assignments) == {("orders", 1): "b"}
    told.clear()
    assignments.pulled("billing", "orders", 0, "b")
    assert told == [(("billing", "orders", 0), "a", "b")]


def test_a_reader_that_comes_back_is_told(assignments, told) -> None:
    assignments.pulled("billing", "orders", 0, "a")
    assignments.left("billing", "a")
    assignments.pulled("billing", "orders", 0, "a")
    assert told[-1] == (("billing", "orders", 0), "a", "a")
    assert readers(assignments) == {("orders", 0): "a"}


def test_a_forgotten_group_has_no_readers(assignments) -> None:
    assignments.pulled("billing", "orders", 0, "a")
    assignments.forget_group("billing")
    assert readers(assignments) == {}
