from __future__ import annotations

import pytest

from remoting.wire.failures import (
    LATEST_READ_MAX,
    TEXT_CHARS_MAX,
    FailureReason,
    LatestFailure,
    read_latest,
    write_latest,
)
from remoting.wire.properties import decode_properties, encode_properties
from tests.support.failure_reasons import read_reason


def test_a_reason_comes_back_out_of_the_properties() -> None:
    reason = FailureReason("shop.errors.NoSku", "sku 17 is \u5165 unknown", "shop.listeners.bill", "host@17#ab", 3)
    properties = {"KEYS": "k"}
    reason.write(properties)
    assert read_reason(decode_properties(encode_properties(properties))) == reason
    FailureReason("OSError").write(properties)
    assert read_reason(properties) == FailureReason("OSError")
    assert properties == {"KEYS": "k", "__FAILURE_CLASS": "OSError", "__FAILURE_ATTEMPT": "1"}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("\n\n first that says anything \nsecond", "first that says anything"),
        ("ends\x01names\x02and values", "ends names and values"),
        ("\x1b[31mred\u202e", "[31mred"),
        ("x" * 300, "x" * (TEXT_CHARS_MAX - 1) + "\u2026"),
        ("", ""),
    ],
)
def test_texts_are_one_line_without_control_characters_and_bounded(text: str, kept: str) -> None:
    assert FailureReason("ValueError", text).text == kept


def test_what_a_member_tells_of_its_latest_failures_is_bounded_when_it_is_read() -> None:
    told = [LatestFailure(topic="orders", message_id=str(each), text="x" * 5000, attempt=2) for each in range(200)]
    read = read_latest(write_latest(told))
    assert (len(read), len(read[0].text), read[1].message_id) == (LATEST_READ_MAX, TEXT_CHARS_MAX, "1")


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", '[{"topic":1}]'])
def test_anything_else_in_the_place_of_latest_failures_is_none(text: str) -> None:
    assert read_latest(text) == []
