"""What a message of a dead-letter queue says of itself."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from mqadmin.deadletters.dead_message import read_dead_message
from remoting.wire.compression import compress
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage
from tests.support.dead_letter_brokers import dead_message

KEPT = 1000


def read(offset: int = 7, **fields: object):
    return read_dead_message(dead_message(offset, **fields), kept_bytes_max=KEPT)


def test_it_says_what_it_was_and_where_it_died() -> None:
    dead = read()
    assert (dead.message_id, dead.queue_offset, dead.origin_topic, dead.tag) == ("UNIQ7", 7, "orders", "paid")
    assert (dead.keys, dead.attempt_count, dead.born_host) == (" order-7 k ", 16, "10.0.0.7:4")
    assert dead.born_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert (dead.body, dead.shape, dead.body_bytes) == (b'{"id": 7}', "JSON object: id number", 9)
    assert dead.failure_class == ""


def test_why_it_failed_is_told_by_our_members() -> None:
    told = {
        Property.FAILURE_CLASS: "KeyError",
        Property.FAILURE_TEXT: "'order_id'",
        Property.FAILURE_MEMBER: "10.0.3.7@1",
        Property.FAILURE_LISTENER: "shop.listeners.bill",
    }
    dead = read(properties=told)
    assert (dead.failure_class, dead.failure_text) == ("KeyError", "'order_id'")
    assert (dead.failed_member, dead.failed_listener) == ("10.0.3.7@1", "shop.listeners.bill")


def test_brokers_of_the_five_line_name_the_origin_a_second_time() -> None:
    assert read(properties={Property.RETRY_TOPIC: "", Property.DLQ_ORIGIN_TOPIC: "refunds"}).origin_topic == "refunds"


def test_numbers_in_the_text_of_an_error_make_no_other_failure() -> None:
    first = read(properties={Property.FAILURE_CLASS: "Timeout", Property.FAILURE_TEXT: "order 17 after 30 s"})
    second = read(properties={Property.FAILURE_CLASS: "Timeout", Property.FAILURE_TEXT: "order 9000 after 31 s"})
    other = read(properties={Property.FAILURE_CLASS: "Timeout", Property.FAILURE_TEXT: "no route"})
    assert first.failure_identity == second.failure_identity != other.failure_identity


def test_another_topic_tag_count_or_shape_is_another_failure() -> None:
    identities = {
        read().failure_identity,
        read(properties={Property.RETRY_TOPIC: "refunds"}).failure_identity,
        read(properties={Property.TAGS: "refunded"}).failure_identity,
        read(reconsume_times=3).failure_identity,
        read(body=b"text").failure_identity,
    }
    assert len(identities) == 5


def test_a_compressed_body_is_kept_plain() -> None:
    body, sys_flag = compress(b'{"id": 7}')
    dead = read(body=body, sys_flag=sys_flag)
    assert (dead.body, dead.body_bytes) == (b'{"id": 7}', 9)


def test_a_body_that_cannot_be_read_or_is_too_large_is_not_kept() -> None:
    assert read(body=b"x" * (KEPT + 1)).body is None
    assert read(body=b"x" * (KEPT + 1)).body_bytes == KEPT + 1
    unreadable = read(body=b"no zlib", sys_flag=1)
    assert (unreadable.body, unreadable.shape) == (None, "unreadable")


def test_nul_characters_become_something_that_every_database_keeps() -> None:
    dead = read(properties={Property.KEYS: "a\0b", "own\0name": "value\0"})
    assert dead.keys == " a␀b "
    assert dead.properties["own␀name"] == "value␀"


@given(
    st.builds(
        StoredMessage,
        topic=st.just("%DLQ%g"),
        queue_id=st.just(0),
        queue_offset=st.integers(0, 2**62),
        sys_flag=st.integers(0, 2**31 - 1),
        born_timestamp_ms=st.integers(-(2**63), 2**63 - 1),
        store_timestamp_ms=st.integers(-(2**63), 2**63 - 1),
        reconsume_times=st.integers(-(2**31), 2**31 - 1),
        body=st.binary(max_size=200),
        properties_text=st.text(max_size=200),
    )
)
def test_whatever_a_message_holds_it_is_read(message: StoredMessage) -> None:
    dead = read_dead_message(message, kept_bytes_max=KEPT)
    assert len(dead.failure_identity) == 32
