"""A JSON Patch on bodies: numbers stay as they are written, and no patch makes a body grow without bound."""

from __future__ import annotations

import json

import pytest

from mqadmin.mending.json_patches import OPERATIONS_MAX, DoesNotApply, WrongPatch, apply, read_patch


def patched(body: bytes, *operations: dict[str, object]) -> bytes:
    return apply(read_patch(json.dumps(operations)), body)


REPLACE = {"op": "replace", "path": "/currency", "value": "EUR"}


@pytest.mark.parametrize(
    ("body", "operation", "after"),
    [
        (b'{"currency":"EU","price":1.10}', REPLACE, b'{"currency":"EUR","price":1.10}'),
        (b'{"currency": "EU", "big": 12345678901234567890123}', REPLACE, None),
        (b'{"a":[1,2]}', {"op": "add", "path": "/a/-", "value": 3}, b'{"a":[1,2,3]}'),
        (b'{"a":1,"b":2}', {"op": "remove", "path": "/a"}, b'{"b":2}'),
        (b'{"a":1}', {"op": "move", "from": "/a", "path": "/b"}, b'{"b":1}'),
        (b'{"a/b":1}', {"op": "replace", "path": "/a~1b", "value": "\u65e9"}, '{"a/b":"早"}'.encode()),
        (b'{"a":1.0}', {"op": "test", "path": "/a", "value": 1.0}, b'{"a":1.0}'),
    ],
)
def test_operations_change_what_they_name_and_nothing_else(body, operation, after):
    expected = after or b'{"currency": "EUR", "big": 12345678901234567890123}'
    assert patched(body, operation) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "[]",
        "[1]",
        '[{"op": "jump", "path": "/a"}]',
        '[{"op": "replace", "path": "/a"}]',
        '[{"op": "replace", "path": "a", "value": 1}]',
        '[{"op": "remove"}]',
        '[{"op": ["x"], "path": 1}]',
        json.dumps([REPLACE] * (OPERATIONS_MAX + 1)),
        json.dumps([REPLACE | {"value": "x" * 70_000}]),
        "[" * 100_000,
    ],
)
def test_what_is_no_patch_is_refused(text):
    with pytest.raises(WrongPatch):
        read_patch(text)


@pytest.mark.parametrize(
    ("body", "operation"),
    [
        (b"text", REPLACE),
        (b"\xff", REPLACE),
        (b"{}", REPLACE),
        (b"[1]", REPLACE),
        (b"17", REPLACE),
        (b'"text"', REPLACE),
        (b"null", {"op": "remove", "path": "/a/b"}),
        (b'{"a":1}', {"op": "test", "path": "/a", "value": 2}),
        (b'{"a":[1]}', {"op": "remove", "path": "/a/7"}),
        (b'{"a":[1]}', {"op": "add", "path": "/a/x", "value": 1}),
        (b'{"a":{"b":1}}', {"op": "move", "from": "/a", "path": "/a/b/c"}),
    ],
)
def test_a_body_to_which_it_does_not_apply_says_so(body, operation):
    with pytest.raises(DoesNotApply) as raised:
        patched(body, operation)
    assert 0 < len(str(raised.value)) <= 200


def test_a_patch_that_doubles_a_body_again_and_again_is_stopped():
    doubling = [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(50)]
    with pytest.raises(DoesNotApply, match="more than the 4194304 bytes"):
        patched(b'{"a":"' + b"x" * 1000 + b'"}', *doubling)
