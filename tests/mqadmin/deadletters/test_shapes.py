"""What bodies of one kind have in common."""

from __future__ import annotations

import pytest

from mqadmin.deadletters.shapes import FIELDS_MAX, PARSED_BYTES_MAX, shape_of


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        (b"", "empty"),
        (b'{"total": 9.5, "id": 17, "paid": true}', "JSON object: id number, paid boolean, total number"),
        (b"{}", "JSON object without fields"),
        (b"[1, 2]", "JSON array"),
        (b'"good"', "JSON text"),
        (b"null", "JSON null"),
        (b"good morning", "text"),
        ("早上好\n".encode(), "text"),
        (b"\x00\x01", "binary"),
        (b"\xff\xfe", "binary"),
        (b"{" * 5000, "text"),
        (b"[" * 100_000, "text"),
    ],
    ids=lambda value: value[:30] if isinstance(value, bytes) else "",
)
def test_shape(body: bytes, shape: str) -> None:
    assert shape_of(body) == shape


def test_values_and_the_order_of_fields_make_no_other_shape() -> None:
    assert shape_of(b'{"a": 1, "b": "x"}') == shape_of(b'{"b": "other", "a": 2000}')


def test_an_object_of_very_many_fields_has_a_short_shape() -> None:
    body = b"{" + b",".join(b'"field%d": 1' % number for number in range(FIELDS_MAX + 5)) + b"}"
    assert shape_of(body).endswith("and 5 more")


def test_a_body_too_large_to_be_parsed_is_text_or_binary() -> None:
    assert shape_of(b'"' + b"a" * PARSED_BYTES_MAX + b'"') == "text"
    assert shape_of("早".encode() * PARSED_BYTES_MAX) == "text"
    assert shape_of(b"\x00" * (PARSED_BYTES_MAX + 1)) == "binary"
