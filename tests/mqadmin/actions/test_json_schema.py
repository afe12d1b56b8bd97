"""What an answer has as arguments can be sent back: `undo`, the arguments of a run, the curl command of a page."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django import forms

from mqadmin.actions import registry
from mqadmin.actions.arguments import YesNoField, arguments_json, declared_form
from mqadmin.actions.json_schema import arguments_schema, check_types


class Told(forms.Form):
    """Arguments of each kind that is not said with a text alone."""

    open = YesNoField()
    known = YesNoField(required=False)
    count = forms.IntegerField(required=False)
    colour = forms.ChoiceField(choices=[("red", "Red")], required=False, initial="red")


SCHEMA = arguments_schema(Told())


@pytest.mark.parametrize("action", registry.ACTIONS.values(), ids=lambda one: one.name)
def test_the_defaults_of_every_action_are_of_the_types_of_its_schema(action: Any) -> None:
    schema = arguments_schema(declared_form(action))
    fields = dataclasses.fields(action.arguments)
    required = {one.name: "x" for one in fields if one.default is dataclasses.MISSING}
    told = arguments_json(action.arguments(**required))
    assert check_types(schema, {name: value for name, value in told.items() if name not in required}) == {}


@pytest.mark.parametrize("value", [True, False, "true", "false"])
def test_yes_and_no_are_taken_as_they_are_answered(value: Any) -> None:
    assert check_types(SCHEMA, {"open": value}) == {}
    assert SCHEMA["properties"]["open"]["enum"] == [True, False, "true", "false"]


def test_null_is_what_is_not_said_and_nothing_that_must_be_said() -> None:
    assert check_types(SCHEMA, {"known": None, "count": None}) == {}
    assert check_types(SCHEMA, {"open": None, "colour": None}) == {
        "open": ['This must be one of true, false, "true", "false".'],
        "colour": ['This must be one of "red".'],
    }


def test_a_value_of_another_type_hears_which_it_must_be() -> None:
    assert check_types(SCHEMA, {"count": "3"}) == {"count": ["This must be a whole number."]}
    assert check_types(SCHEMA, {"colour": True}) == {"colour": ['This must be one of "red".']}
