"""The handle of a recall, as Apache's `RecallMessageHandle` writes and reads it."""

from __future__ import annotations

import base64

import pytest

from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.recall_handle import RecallHandle, read_recall_handle, recall_handle

# From a send to Apache RocketMQ 5.4.0.
APACHES = "djEgbGF0ZSBicm9rZXItYSAxNzk1MjY1ODc1MDAxIEsyNg=="
WAITING = {"REAL_TOPIC": "late", "TIMER_OUT_MS": "1795265875000", "UNIQ_KEY": "K26"}


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()


def test_a_handle_is_written_as_apache_writes_it():
    assert recall_handle(WAITING, "broker-a") == APACHES


def test_a_handle_is_read_with_and_without_its_filling():
    for text in (APACHES, APACHES.rstrip("=")):
        assert read_recall_handle(text) == RecallHandle("late", "broker-a", "1795265875001", "K26")


@pytest.mark.parametrize(
    "properties",
    [{}, WAITING | {"REAL_TOPIC": "%RETRY%billing"}, {"REAL_TOPIC": "late", "DELAY": "3"}, {"TIMER_OUT_MS": "5"}],
    ids=["plain", "a retry", "a level", "delivered at once"],
)
def test_a_message_that_does_not_wait_for_its_own_time_has_no_handle(properties):
    assert recall_handle(properties, "broker-a") is None


@pytest.mark.parametrize("text", ["", "!!", "djE", *map(encoded, (b"v2 a b 1 k", b"v1 a b 1", b"v1 a b 1 \xff"))])
def test_a_handle_that_is_none_is_refused(text):
    with pytest.raises(MessageError, match="recall handle is invalid") as refused:
        read_recall_handle(text)
    assert refused.value.response_code == ResponseCode.ILLEGAL_OPERATION
