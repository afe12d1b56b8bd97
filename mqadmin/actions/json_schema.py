"""The arguments of an action as JSON Schema (2020-12), and the check that JSON values have its types.

Made from the same form as the page's fields: types, choices, limits, defaults, words. The form itself stays the one
that validates; `check_types` only refuses what a form would take for the text that it never is in JSON (a number
written as text, a list where a name belongs). What the API answers as arguments, it takes: true and false beside their
words, null for what is not said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

from django import forms
from django.core import validators
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import YesNoField

Schema = dict[str, Any]

_FORMATS: tuple[tuple[type[forms.Field], Schema], ...] = (
    (YesNoField, {"type": ["boolean", "string"]}),
    (forms.MultipleChoiceField, {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (forms.BooleanField, {"type": "boolean"}),
    (forms.FloatField, {"type": "number"}),
    (forms.DecimalField, {"type": "string", "format": "decimal"}),
    (forms.IntegerField, {"type": "integer"}),
    (forms.DateTimeField, {"type": "string", "format": "date-time"}),
    (forms.DateField, {"type": "string", "format": "date"}),
    (forms.EmailField, {"type": "string", "format": "email"}),
    (forms.URLField, {"type": "string", "format": "uri"}),
    (forms.JSONField, {}),
)


_LIMITS: tuple[tuple[type[validators.BaseValidator], str], ...] = (
    (validators.MaxLengthValidator, "maxLength"),
    (validators.MinLengthValidator, "minLength"),
    (validators.MaxValueValidator, "maximum"),
    (validators.MinValueValidator, "minimum"),
)


def arguments_schema(form: forms.Form) -> Schema:
    """Returns the schema of the arguments that a form reads (`arguments.arguments_form`)."""
    schema: Schema = {
        "type": "object",
        "properties": {name: _argument(field) for name, field in form.fields.items()},
        "additionalProperties": False,
    }
    required = [name for name, field in form.fields.items() if field.required]
    return schema | ({"required": required} if required else {})


def check_types(schema: Schema, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns a sentence by each argument whose value is of another JSON type than the schema says."""
    errors: dict[str, list[str]] = {}
    for name, value in values.items():
        declared = schema["properties"].get(name, {})
        if not _is_of(declared, value):
            errors[name] = [_expectation(declared)]
    return errors


def _expectation(declared: Schema) -> str:
    """Returns a sentence that says what the value must be: one of the choices where there are such."""
    if choices := declared.get("enum"):
        words = ", ".join(json.dumps(one, ensure_ascii=False) for one in choices)
        return _("This must be one of %(choices)s.") % {"choices": words}
    return _("This must be %(type)s.") % {"type": _TYPES[_types_of(declared)[0]][1]}


_TYPES: Mapping[str, tuple[type | tuple[type, ...], Promise]] = {
    "string": (str, gettext_lazy("a text")),
    "integer": (int, gettext_lazy("a whole number")),
    "number": ((int, float), gettext_lazy("a number")),
    "boolean": (bool, gettext_lazy("true or false")),
    "array": (list, gettext_lazy("a list")),
    "object": (dict, gettext_lazy("an object")),
    "null": (type(None), gettext_lazy("null")),
}


def _types_of(schema: Schema) -> list[str]:
    """Returns the names of the types that a value may have; none where any will do."""
    declared = schema.get("type", [])
    return [declared] if isinstance(declared, str) else declared


def _is_of(schema: Schema, value: Any) -> bool:
    expected = _types_of(schema)
    return not expected or any(_is_of_type(one, schema, value) for one in expected)


def _is_of_type(expected: str, schema: Schema, value: Any) -> bool:
    if isinstance(value, bool) and expected != "boolean":
        return False
    if not isinstance(value, _TYPES[expected][0]):
        return False
    return expected != "array" or all(_is_of(schema["items"], one) for one in cast("list[Any]", value))


def _argument(field: forms.Field) -> Schema:
    schema: Schema = {"title": str(field.label)} if field.label else {}
    if field.help_text:
        schema["description"] = str(field.help_text)
    schema |= _type(field)
    if isinstance(field, forms.ChoiceField):
        _add_choices(schema, field)
    for limit, keyword in _LIMITS:
        _add_limit(schema, field, limit, keyword)
    if schema.get("type") == "string" and field.required and "enum" not in schema:
        schema.setdefault("minLength", 1)
    default = _json(field.initial)
    if default is not None:
        return schema | {"default": default}
    return schema if field.required or "type" not in schema else _or_null(schema)


def _or_null(schema: Schema) -> Schema:
    """Returns the schema of what may be left out, and is null in answers then."""
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return schema | {"type": [*_types_of(schema), "null"]} | choices


def _type(field: forms.Field) -> Schema:
    if isinstance(field, forms.TypedChoiceField) and field.coerce is int:
        return {"type": "integer"}
    return next((deepcopy(schema) for kind, schema in _FORMATS if isinstance(field, kind)), {"type": "string"})


def _add_choices(schema: Schema, field: forms.ChoiceField) -> None:
    """Names the choices; a field whose choices only a cluster knows has none to name."""
    choices: list[tuple[Any, Any]] = list(cast(Any, field.choices))
    values = [value for value, _words in choices if value != ""]
    if isinstance(field, YesNoField):
        values = [True, False, *values]
    words = [f"{value}: {words}" for value, words in choices if value not in ("", words)]
    if values:
        (schema["items"] if schema["type"] == "array" else schema)["enum"] = values
    if words:
        schema["description"] = " ".join(filter(None, [schema.get("description"), "; ".join(words) + "."]))


def _add_limit(schema: Schema, field: forms.Field, limit: type[validators.BaseValidator], keyword: str) -> None:
    for validator in field.validators:
        if isinstance(validator, limit):
            value = validator.limit_value
            schema[keyword] = value() if callable(value) else value


def _json(value: Any) -> Any:
    value = value() if callable(value) else value
    if isinstance(value, tuple):
        return list(value)
    return value.isoformat() if hasattr(value, "isoformat") else value
