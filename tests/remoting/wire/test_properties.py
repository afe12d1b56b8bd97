from __future__ import annotations

import pytest

from remoting.wire.properties import Property, decode_properties, encode_properties


def test_properties_survive_the_round_trip() -> None:
    properties = {Property.KEYS: "a b", Property.TAGS: "paid", "名": "值"}
    assert decode_properties(encode_properties(properties)) == properties


def test_properties_are_written_with_the_last_separator() -> None:
    assert encode_properties({"k": "v"}) == "k\x01v\x02"
    assert encode_properties({}) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("k\x01v", {"k": "v"}, id="no-last-separator"),
        pytest.param("k\x01v\x02\x02", {"k": "v"}, id="empty-segment"),
        pytest.param("k\x02a\x01b\x02", {"a": "b"}, id="segment-without-value"),
        pytest.param("\x01v\x02kk\x01\x02", {}, id="empty-name-or-value"),
        pytest.param("k\x01a\x01b\x02", {"k": "a\x01b"}, id="second-name-end-belongs-to-the-value"),
        pytest.param("k\x01a\x02k\x01b\x02", {"k": "b"}, id="later-wins"),
        pytest.param("", {}, id="empty"),
    ],
)
def test_decode_properties_is_as_patient_as_java(text: str, expected: dict[str, str]) -> None:
    assert decode_properties(text) == expected
