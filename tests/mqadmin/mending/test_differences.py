"""The diff that people see before they mend, and its bounds."""

from __future__ import annotations

from mqadmin.mending.differences import (
    COMPARED_BYTES_MAX,
    LINE_CHARS_MAX,
    SHOWN_LINES_MAX,
    DiffLine,
    LineKind,
    PropertyDiff,
    body_diff,
    property_diff,
)


def test_json_is_compared_field_by_field_however_it_is_written():
    lines = body_diff(b'{"a":1,"b":2}', b'{"a": 1, "b": 3}').lines
    assert lines == (
        DiffLine(LineKind.PLACE, "@@ -1,4 +1,4 @@"),
        DiffLine(LineKind.SAME, "{"),
        DiffLine(LineKind.SAME, '  "a": 1,'),
        DiffLine(LineKind.REMOVED, '  "b": 2'),
        DiffLine(LineKind.ADDED, '  "b": 3'),
        DiffLine(LineKind.SAME, "}"),
    )


def test_bytes_are_compared_in_hexadecimal():
    kinds = [line.kind for line in body_diff(b"\xff\x00", b"\xff\x01").lines]
    assert kinds == [LineKind.PLACE, LineKind.REMOVED, LineKind.ADDED]


def test_what_is_too_much_is_cut_or_not_compared():
    assert body_diff(b"x" * COMPARED_BYTES_MAX, b"y").is_too_large
    assert body_diff(b"a\n" * 1500, b"b\n" * 1500).is_too_large
    long = body_diff(b"a\n" * 900, b"b\n" * 900)
    assert long.is_cut
    assert len(long.lines) == SHOWN_LINES_MAX
    wide = body_diff(b"x" * 1000, b"y")
    assert len(wide.lines[1].text) == LINE_CHARS_MAX + 1


def test_equal_bodies_have_no_lines():
    assert body_diff(b"a", b"a").lines == ()


def test_properties_that_came_went_or_changed_are_told():
    found = property_diff({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"})
    assert found == (PropertyDiff("b", "2", "4"), PropertyDiff("c", "3", None), PropertyDiff("d", None, "5"))
