"""Properties looked up in their text."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from remoting.wire.properties import decode_properties
from remoting.wire.property_lookup import TEXT_START, last_value, mark_of

NAMES = ["a", "b", "ab", "ba", "c"]
PIECES = st.sampled_from([b"a", b"b", b"\x01", b"\x02", "价".encode(), b"\xe4", b"\xff"])


@given(st.lists(PIECES, max_size=24).map(b"".join))
@example(b"")
@example(b"a\x011\x02b\x012")
@example(b"a\x011\x02b\x012\x02a\x013\x02")
@example(b"a\x011\x02a\x01\x02")
@example(b"a\x01b\x01c\x02")
@example(b"\x01a\x02b\x012\x02")
@example(b"a\x02b\x012\x02")
@example(b"ba\x011\x02a\x012\x02ab\x013\x02")
def test_lookups_answer_as_the_decoded_properties(stored: bytes) -> None:
    decoded = decode_properties(stored.decode("utf-8", "replace"))
    text = TEXT_START + stored
    for name in NAMES:
        mark = mark_of(name)
        value = last_value(text, mark)
        assert value.decode("utf-8", "replace") == decoded.get(name, "")
        # What filters do on the spot.
        assert (text.rpartition(mark)[2].partition(TEXT_START)[0] or last_value(text, mark)) == value
