"""Tag, keys and the sender's own properties are edited; the system's are locked."""

from __future__ import annotations

import pytest

from mqadmin.mending.editable_properties import WrongProperties, check, editable, is_locked, mended
from remoting.wire.properties import Property

ORIGINAL = {
    "UNIQ_KEY": "U1",
    "colour": "red",
    "KEYS": "k",
    "TAGS": "t",
    "RETRY_TOPIC": "orders",
    "__FAILURE_CLASS": "X",
}


def test_tag_keys_and_own_properties_are_edited_in_that_order_and_the_others_stay():
    assert list(editable(ORIGINAL).items()) == [("KEYS", "k"), ("TAGS", "t"), ("colour", "red")]
    assert mended(ORIGINAL, {"TAGS": "u"}) == {
        "UNIQ_KEY": "U1",
        "RETRY_TOPIC": "orders",
        "__FAILURE_CLASS": "X",
        "TAGS": "u",
    }


@pytest.mark.parametrize(
    "name", [Property.RETRY_TOPIC, Property.TIMER_DELIVER_MS, Property.POP_CK, "__anything", Property.DELAY]
)
def test_what_decides_where_a_message_goes_and_when_is_locked(name):
    assert is_locked(name)
    with pytest.raises(WrongProperties, match="a property of the system"):
        check(ORIGINAL, {name: "1"})


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"": "1"}, "lacks one"),
        ({"colour": ""}, "colour lacks one"),
        ({"colour": "a\x02b"}, "no property can hold"),
        ({"a\x01": "b"}, "no property can hold"),
        ({"colour": "a\0b"}, "no property can hold"),
        ({"colour": "x" * 32_000}, "30719 is the most"),
    ],
)
def test_what_no_message_can_carry_is_refused(wanted, words):
    with pytest.raises(WrongProperties, match=words):
        check(ORIGINAL, wanted)
