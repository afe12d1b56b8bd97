"""What progress passed: the sum of its steps forward, whatever moved an offset back between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqadmin.lag.passed import steps_forward

A = ("broker-a", 0)
B = ("broker-b", 0)


@pytest.mark.parametrize(
    ("first", "later", "found"),
    [
        ({A: 100}, [{A: 160}, {A: 160}, {A: 200}], (100, 0)),
        ({A: 100}, [{A: 160}, {A: 100}, {A: 130}], (90, 1)),
        ({A: 2000}, [{A: 900}], (0, 1)),
        ({A: 100, B: 5}, [{A: 90, B: 9}, {A: 100, B: 3}], (14, 2)),
        ({A: None}, [{A: 7}], (7, 0)),
        ({}, [{B: 7}, {A: None, B: 8}], (8, 0)),
        ({A: 5}, [{}, {A: None}, {A: 9}], (4, 0)),
        ({A: 5}, [], (0, 0)),
    ],
    ids=[
        "only forward",
        "back, and forward again",
        "back alone",
        "two queues",
        "no offset at first",
        "a queue that was not there",
        "not known in between",
        "nothing since",
    ],
)
def test_steps_forward_count_and_steps_back_are_told(first, later, found) -> None:
    assert steps_forward(first, later) == found


@given(st.lists(st.tuples(st.integers(0, 50), st.none() | st.integers(0, 1000)), max_size=30), st.integers(0, 1000))
def test_messages_are_counted_as_often_as_progress_passed_them(moves, begin) -> None:
    """Each cycle consumes some, or is a reset to an offset: what was consumed is what is counted."""
    at, consumed, states = begin, 0, []
    for taken, reset_to in moves:
        if reset_to is not None and reset_to <= at:
            at = reset_to
        else:
            at += taken
            consumed += taken
        states.append({A: at})
    assert steps_forward({A: begin}, states)[0] == consumed
