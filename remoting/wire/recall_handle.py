"""The handle by which a sender recalls a timer message before its delivery (`RecallMessageHandle`).

URL-safe base64 of `v1 <topic> <broker name> <time in ms> <unique key>`. The time is the message's slot + 1.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import NamedTuple

from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.names import is_retry_topic
from remoting.wire.properties import Property

_VERSION = "v1"
_FIELD_COUNT = 5
_ALPHABET = re.compile(rb"[A-Za-z0-9_-]+={0,2}\Z")


class RecallHandle(NamedTuple):
    """The parts of a handle; `time_text` in ms since the epoch. Its text is what a sender gets."""

    topic: str
    broker_name: str
    time_text: str
    unique_key: str

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(" ".join((_VERSION, *self)).encode()).decode()


def recall_handle(properties: Mapping[str, str], broker_name: str) -> str | None:
    """Returns the handle of a message that was stored with `properties`; None when it is no timer message.

    Java: `SendMessageProcessor.attachRecallHandle`.
    """
    topic, slot = properties.get(Property.REAL_TOPIC), properties.get(Property.TIMER_OUT_MS, "")
    if topic is None or is_retry_topic(topic) or not slot.isdecimal():
        return None
    return str(RecallHandle(topic, broker_name, str(int(slot) + 1), properties.get(Property.UNIQ_KEY, "null")))


def read_recall_handle(text: str) -> RecallHandle:
    """Decodes a handle. Raises MessageError (ILLEGAL_OPERATION) for a text that is none."""
    data = text.encode("utf-8", "replace")
    try:
        if _ALPHABET.match(data) is None:
            raise ValueError("a character that base64 does not have")
        words = base64.urlsafe_b64decode(data + b"=" * (-len(data) % 4)).decode().split(" ")
    except (binascii.Error, ValueError) as error:
        raise MessageError("recall handle is invalid", ResponseCode.ILLEGAL_OPERATION) from error
    if words[0] != _VERSION or len(words) < _FIELD_COUNT:
        raise MessageError("recall handle is invalid", ResponseCode.ILLEGAL_OPERATION)
    return RecallHandle(*words[1:_FIELD_COUNT])
