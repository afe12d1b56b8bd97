"""A description of OpenAPI 3.1 as 3.0: what may be null is said in the older words, all else stays."""

from __future__ import annotations

from typing import Any

import pytest

from mqadmin.api.openapi_3_0 import as_openapi_3_0

ROLE = {"$ref": "#/components/schemas/Role"}
NULL = {"type": "null"}
SCHEMAS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "null or text": (
        {"type": ["string", "null"], "maxLength": 9},
        {"maxLength": 9, "type": "string", "nullable": True},
    ),
    "several types": ({"type": ["string", "integer"]}, {}),
    "several types or null": ({"type": ["string", "integer", "null"]}, {"nullable": True}),
    "null or another schema": ({"oneOf": [ROLE, NULL]}, {"allOf": [ROLE], "nullable": True}),
    "null or one of two": (
        {"oneOf": [ROLE, {"type": "string"}, NULL]},
        {"oneOf": [ROLE, {"type": "string"}], "nullable": True},
    ),
    "one of two": ({"oneOf": [ROLE, {"type": "string"}]}, {"oneOf": [ROLE, {"type": "string"}]}),
    "nothing required": ({"type": "object", "required": []}, {"type": "object"}),
    "something required": ({"type": "object", "required": ["a"]}, {"type": "object", "required": ["a"]}),
    "properties that are called like words of a schema": (
        {"properties": {"type": {"type": ["string", "null"]}, "oneOf": ROLE, "required": {"type": "boolean"}}},
        {"properties": {"type": {"type": "string", "nullable": True}, "oneOf": ROLE, "required": {"type": "boolean"}}},
    ),
    "within": (
        {"items": {"additionalProperties": {"type": ["integer", "null"]}}},
        {"items": {"additionalProperties": {"type": "integer", "nullable": True}}},
    ),
}


@pytest.mark.parametrize("what", SCHEMAS)
def test_a_schema_says_the_same_in_3_0(what: str) -> None:
    schema, expected = SCHEMAS[what]
    description = {"openapi": "3.1.1", "paths": {}, "components": {"schemas": {"it": schema}}}
    before = repr(description)
    assert as_openapi_3_0(description) == {
        "openapi": "3.0.3",
        "paths": {},
        "components": {"schemas": {"it": expected}},
    }
    assert repr(description) == before
