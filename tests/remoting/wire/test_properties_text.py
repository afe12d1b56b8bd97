"""Properties looked up in their text."""

from __future__ import annotations

import random

import pytest

from remoting.wire.properties import Property, decode_properties
from remoting.wire.properties_text import PropertiesText

TEXTS = {
    "none": "",
    "one": "a\x011\x02",
    "without the last end": "a\x011\x02b\x012",
    "the last of one name": "a\x011\x02b\x012\x02a\x013\x02",
    "an empty one behind": "a\x011\x02a\x01\x02",
    "a value with a name's end": "a\x01b\x01c\x02",
    "no name": "\x01a\x02b\x012\x02",
    "no value": "a\x02b\x012\x02",
    "a name within another": "ba\x011\x02a\x012\x02ab\x013\x02",
    "beyond ASCII": "价格\x01九\x02",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_lookups_answer_as_the_decoded_properties(text: str) -> None:
    assert_the_same(text, ["a", "b", "ab", "ba", "c", "", "价格"])


def test_lookups_in_random_texts_answer_as_the_decoded_properties() -> None:
    random_source = random.Random(7)
    for _ in range(3000):
        assert_the_same("".join(random_source.choices("ab\x01\x02", k=random_source.randrange(16))), ["a", "b", "ab"])


def assert_the_same(text: str, names: list[str]) -> None:
    decoded, looked_up = decode_properties(text), PropertiesText(text)
    for name in names:
        assert looked_up.get(name) == decoded.get(name)
        assert (name in looked_up) == (name in decoded)
    assert dict(PropertiesText(text)) == decoded


def test_the_checksum_is_no_property() -> None:
    properties = PropertiesText(f"a\x011\x02{Property.CRC32}\x010123456789\x02")
    assert Property.CRC32 not in properties
    assert dict(properties) == {"a": "1"}
    with pytest.raises(KeyError):
        properties[Property.CRC32]
