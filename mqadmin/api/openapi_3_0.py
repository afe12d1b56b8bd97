"""An OpenAPI 3.1 description as 3.0.3, for Swagger UI: of 3.1 it builds a model first, which takes most of its time.

What differs in descriptions like ours is how a schema says that a value may be null, and that no schema says that
nothing is required (OpenAPI 3.0.3, "Schema Object").
"""

from __future__ import annotations

from typing import Any

VERSION = "3.0.3"
_NULL = "null"


def as_openapi_3_0(description: dict[str, Any]) -> dict[str, Any]:
    """Returns the description anew; nothing of it is shared."""
    return {**_converted(description), "openapi": VERSION}


def _converted(part: Any) -> Any:
    if isinstance(part, list):
        return [_converted(one) for one in part]
    if not isinstance(part, dict):
        return part
    converted = {name: _converted(one) for name, one in part.items() if (name, one) != ("required", [])}
    return _nullable_choice(_nullable_type(converted))


def _nullable_type(schema: dict[str, Any]) -> dict[str, Any]:
    """Rewrites `type: [string, null]`; a schema of several types besides says nothing of its type."""
    types = schema.get("type")
    if not isinstance(types, list):
        return schema
    others = [one for one in types if one != _NULL]
    rest = {name: one for name, one in schema.items() if name != "type"}
    return rest | ({"type": others[0]} if len(others) == 1 else {}) | ({"nullable": True} if _NULL in types else {})


def _nullable_choice(schema: dict[str, Any]) -> dict[str, Any]:
    """Rewrites `oneOf: […, type: null]`; beside a reference nothing else may stand, so it gets into an `allOf`."""
    choices = schema.get("oneOf")
    if not isinstance(choices, list) or {"type": _NULL} not in choices:
        return schema
    others = [one for one in choices if one != {"type": _NULL}]
    rest = {name: one for name, one in schema.items() if name != "oneOf"}
    return rest | {"allOf" if len(others) == 1 else "oneOf": others, "nullable": True}
