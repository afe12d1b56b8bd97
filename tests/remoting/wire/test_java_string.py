"""String.hashCode against values from a JVM."""

from __future__ import annotations

import pytest

from remoting.wire.java_string import string_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("TagA", 2598919, id="ascii"),
        pytest.param("TagB", 2598920, id="ascii-next"),
        pytest.param("中文", 646394, id="two-chinese-letters"),
        pytest.param("polygenelubricants", -2147483648, id="smallest-int"),
        pytest.param("hello world", 1794106052, id="wraps"),
        pytest.param("😀", 1772899, id="surrogate-pair"),
    ],
)
def test_string_hash_is_javas(text: str, expected: int) -> None:
    assert string_hash(text) == expected


def test_string_hash_of_a_long_text_equals_the_plain_definition() -> None:
    text = "order-4711-" * 97 + "é"
    plain = 0
    for unit in text:
        plain = (31 * plain + ord(unit)) & 0xFFFFFFFF
    assert string_hash(text) & 0xFFFFFFFF == plain
