"""What takes back an action that switches something on or off."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mqadmin.actions.declaration import Change, Undo
from mqadmin.actions.switches import undo_of_switch, yes_no


@dataclass(frozen=True, slots=True)
class SetLamp:
    lamp: str
    lit: str


CHANGE = Change("", {"lit": "no"}, {"lit": "yes"})


@pytest.mark.parametrize(("before", "after"), [("yes", "no"), ("no", "yes")])
def test_the_opposite_takes_it_back_for_the_same_subject(before, after) -> None:
    undo = undo_of_switch("set_lamp", SetLamp(lamp="hall", lit=before), "lit", [CHANGE.done()])
    assert undo == Undo("set_lamp", {"lamp": "hall", "lit": after})


@pytest.mark.parametrize("outcome", [CHANGE.unchanged(), CHANGE.failed("the bulb is broken")])
def test_what_changed_nothing_has_nothing_to_take_back(outcome) -> None:
    assert undo_of_switch("set_lamp", SetLamp(lamp="hall", lit="yes"), "lit", [outcome]) is None


def test_the_words_are_those_of_arguments() -> None:
    assert (yes_no(True), yes_no(False)) == ("yes", "no")
