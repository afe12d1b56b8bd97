"""The arguments of an action as JSON Schema (2020-12), and the check that JSON values have its types.

Made from the same form as the page's fields: types, choices, limits, defaults, words. The form itself stays the one
that validates; `check_types` only refuses what a form would take for the text that it never is in JSON (a number
written as text, a list where a name belongs).
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

from django import forms
from django.core import validators
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

Schema = dict[str, Any]

_FORMATS: tuple[tuple[type[forms.Field], Schema], ...] = (
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
            errors[name] = [_("This must be %(type)s.") % {"type": _TYPES[declared["type"]][1]}]
    return errors


_TYPES: Mapping[str, tuple[type | tuple[type, ...], Promise]] = {
    "string": (str, gettext_lazy("a text")),
    "integer": (int, gettext_lazy("a whole number")),
    "number": ((int, float), gettext_lazy("a number")),
    "boolean": (bool, gettext_lazy("true or false")),
    "array": (list, gettext_lazy("a list")),
    "object": (dict, gettext_lazy("an object")),
}


def _is_of(schema: Schema, value: Any) -> bool:
    expected = schema.get("type")
    if expected is None:
        return True
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
    return schema | ({"default": default} if default is not None else {})


def _type(field: forms.Field) -> Schema:
    if isinstance(field, forms.TypedChoiceField) and field.coerce is int:
        return {"type": "integer"}
    return next((deepcopy(schema) for kind, schema in _FORMATS if isinstance(field, kind)), {"type": "string"})


def _add_choices(schema: Schema, field: forms.ChoiceField) -> None:
    """Names the choices; a field whose choices only a cluster knows has none to name."""
    choices: list[tuple[Any, Any]] = list(cast(Any, field.choices))
    values = [value for value, _words in choices if value != ""]
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
