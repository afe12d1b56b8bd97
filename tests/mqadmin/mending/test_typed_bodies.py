"""A body as a field shows it, and what was typed as the body again."""

from __future__ import annotations

import pytest

from mqadmin.mending.typed_bodies import FIELD_BYTES_MAX, TypedAs, WrongBody, from_field, read_typed, typed
from remoting.wire.limits import BODY_BYTES_MAX


@pytest.mark.parametrize(
    ("body", "text", "typed_as"),
    [
        (b'{"id":17}', '{\n  "id": 17\n}', TypedAs.TEXT),
        (b"two\nlines", "two\nlines", TypedAs.TEXT),
        (b"two\r\nlines", "two\r\nlines", TypedAs.TEXT),
        ("早安 👩‍👧".encode(), "早安 👩‍👧", TypedAs.TEXT),
        (b"", "", TypedAs.TEXT),
        (b"\x00\xff", "00 ff", TypedAs.HEX),
        # A field would give these back otherwise.
        (b"a\x00b", "61 00 62", TypedAs.HEX),
        (b"a\rb", "61 0d 62", TypedAs.HEX),
        (b"a\r\nb\n", "61 0d 0a 62 0a", TypedAs.HEX),
    ],
)
def test_a_body_is_typed_as_what_it_is_and_comes_back_unchanged(body, text, typed_as):
    shown = typed(body)
    assert (shown.text, shown.typed_as, shown.reason) == (text, typed_as, "")
    # As a browser sends it.
    sent = shown.text.replace("\r\n", "\n").replace("\n", "\r\n")
    assert read_typed(body, from_field(sent, body), shown.typed_as) == body


def test_a_body_too_large_for_a_field_says_so():
    shown = typed(b"x" * (FIELD_BYTES_MAX + 1))
    assert shown.text == ""
    assert "JSON Patch" in shown.reason


@pytest.mark.parametrize(
    ("original", "typed_text", "stored"),
    [
        (b'{"a":1,"b":[1,2]}', '{\n  "a": 2,\n  "b": [1, 2]\n}', b'{"a":2,"b":[1,2]}'),
        (b'{"a": 1, "b": 2}', '{"a":2,"b":2}', b'{"a": 2, "b": 2}'),
        (b'{\n "a": 1\n}', '{"a":2}', b'{"a":2}'),
        # Numbers stay as they are written.
        (b'{"a":1.10,"b":12345678901234567890}', '{"a":1.10,"b":12345678901234567891}', None),
    ],
)
def test_json_is_stored_as_compact_as_it_was(original, typed_text, stored):
    assert read_typed(original, typed_text, TypedAs.TEXT) == (stored or typed_text.encode())


def test_json_that_says_the_same_is_the_original():
    original = b'{ "a" : 1 }'
    assert read_typed(original, '{"a": 1}', TypedAs.TEXT) == original


@pytest.mark.parametrize(
    ("original", "text", "typed_as", "words"),
    [
        (b"{}", "{", TypedAs.TEXT, "The body is JSON"),
        (b"{}", "NaN", TypedAs.TEXT, "The body is JSON"),
        (b"text", "ff", TypedAs.HEX, "must be UTF-8"),
        (b"text", "\ud800", TypedAs.TEXT, "a lone surrogate"),
        (b"\xff", "f", TypedAs.HEX, "hexadecimal"),
        (b"\xff", "?", TypedAs.BASE64, "Base64"),
        (b"text", "x" * (BODY_BYTES_MAX + 1), TypedAs.TEXT, "a broker takes 4194304"),
        (b"{}", "[" * 100_000 + "]" * 100_000, TypedAs.TEXT, "The body is JSON"),
    ],
)
def test_what_cannot_be_the_body_is_refused_with_the_reason(original, text, typed_as, words):
    with pytest.raises(WrongBody, match=words):
        read_typed(original, text, typed_as)


def test_a_binary_body_and_an_empty_one_may_become_text():
    assert read_typed(b"\xff", "aGVsbG8=", TypedAs.BASE64) == b"hello"
    assert read_typed(b"", "hello", TypedAs.TEXT) == b"hello"
