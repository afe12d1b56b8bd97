"""Java's properties text."""

from __future__ import annotations

import pytest

from remoting.wire.java_properties import read_properties, write_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        ("# why\n! or so\n\n  \n", {}),
        ("a=b", {"a": "b"}),
        ("a = b c \r\nd:e\rf g", {"a": "b c ", "d": "e", "f": "g"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a", {"a": ""}),
        ("a=1\na=2", {"a": "2"}),
        (r"a\=b=c\:\\", {"a=b": "c:\\"}),
        ("a=b\\\n   c", {"a": "bc"}),
        (r"a=\u0041\tb", {"a": "A\tb"}),
        ("messageDelayLevel=1s 5s\n", {"messageDelayLevel": "1s 5s"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text, properties):
    assert read_properties(text) == properties


def test_properties_are_written_sorted_and_as_they_are():
    assert write_properties({"b": "1 2", "a": "x:y"}) == "a=x:y\nb=1 2\n"
