"""A message before it is sent: checked, completed, compressed (RocketMQ's `Validators`, `DefaultMQProducerImpl`).

Pure. Everything that a broker would refuse or silently drop is refused here, before anything is sent, with a
`MessageError` that names the rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from remoting.wire.compression import LEVEL, CompressionType, compress
from remoting.wire.errors import MessageError
from remoting.wire.limits import BODY_BYTES_MAX, COMPRESS_BODY_BYTES_MIN, PROPERTIES_BYTES_MAX
from remoting.wire.names import NOT_ALLOWED_SEND_TOPICS, check_topic, is_retry_topic
from remoting.wire.properties import NAME_END, RESERVED_PROPERTIES, VALUE_END, Property, encode_properties


class MessageOptions(TypedDict, total=False):
    """What may be said of a message besides its topic and body; the fields of `Message`, as keyword arguments."""

    tags: str | None
    keys: str | Iterable[str]
    properties: Mapping[str, str] | None
    flag: int
    delay_level: int
    delay_s: float | None
    deliver_at: datetime | None


@dataclass(frozen=True, slots=True)
class Message:
    """A message as its sender gives it.

    `tags` is what consumers filter by, `keys` what messages are found by: one text, or several without blanks in them.
    `properties` are the user's own. `flag` is stored and returned as it is.

    At most one of these says when consumers get it: `delay_level` 1 to 18 of the broker's levels (1s 5s 10s 30s 1m …
    2h; 0 is none), `delay_s` seconds after the send, or `deliver_at`, a moment with its time zone. The last two are
    RocketMQ's timer messages (`setDelayTimeMs`, `setDeliverTimeMs`): as late as the broker's `timerMaxDelaySec` allows,
    three days unless configured; a moment that has passed is delivered at once.
    """

    body: bytes
    tags: str | None = None
    keys: str | Iterable[str] = ()
    properties: Mapping[str, str] | None = None
    flag: int = 0
    delay_level: int = 0
    delay_s: float | None = None
    deliver_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """What a send request carries: `body` as it travels, compressed where `sys_flag` says so, and all properties."""

    topic: str
    message_id: str
    body: bytes
    properties_text: str
    flag: int
    sys_flag: int
    is_batch: bool = False
    is_reply: bool = False
    reconsume_times: int | None = None
    max_reconsume_times: int | None = None


@dataclass(frozen=True, slots=True)
class Compression:
    """Bodies of `from_bytes` and more travel compressed (`compressMsgBodyOverHowmuch`, `compressType`, `…Level`)."""

    from_bytes: int = COMPRESS_BODY_BYTES_MIN
    kind: CompressionType = CompressionType.ZLIB
    level: int = LEVEL


DEFAULT_COMPRESSION = Compression()


def prepare_message(
    topic: str,
    message: Message,
    message_id: str,
    *,
    compression: Compression = DEFAULT_COMPRESSION,
    more: Mapping[str, str] | None = None,
) -> OutgoingMessage:
    """Returns the message ready for a send request; `more` are properties of the protocol's own.

    Raises MessageError for what a broker would not take.
    """
    check_body(message.body)
    properties = complete_properties(message, message_id)
    if more:
        properties.update(more)
    body, sys_flag = message.body, 0
    if len(body) >= compression.from_bytes:
        body, sys_flag = compress(body, kind=compression.kind, level=compression.level)
    return OutgoingMessage(topic, message_id, body, encode_checked(properties), message.flag, sys_flag)


def complete_properties(message: Message, message_id: str) -> dict[str, str]:
    """Returns the user's properties and those that the other fields stand for. Raises MessageError."""
    properties = dict(message.properties) if message.properties else {}
    if properties:
        _check_properties(properties)
    properties[Property.UNIQ_KEY] = message_id
    if message.tags:
        properties[Property.TAGS] = _checked_value(Property.TAGS, message.tags)
    keys = message.keys if isinstance(message.keys, str) else " ".join(message.keys)
    if keys:
        properties[Property.KEYS] = _checked_value(Property.KEYS, keys)
    if is_delayed(message):
        name, value = _delay(message)
        properties[name] = value
    return properties


def is_delayed(message: Message) -> bool:
    """Returns whether the message is to be delivered later than it is sent."""
    return bool(message.delay_level) or message.delay_s is not None or message.deliver_at is not None


def _delay(message: Message) -> tuple[str, str]:
    """Returns the property that says when the message is delivered, and its value. Raises MessageError."""
    level, delay_s, deliver_at = message.delay_level, message.delay_s, message.deliver_at
    if bool(level) + (delay_s is not None) + (deliver_at is not None) > 1:
        raise MessageError("delay_level, delay_s and deliver_at exclude each other: give one of them")
    if delay_s is not None:
        if not (math.isfinite(delay_s) and delay_s >= 0):
            raise MessageError(f"delay_s is {delay_s}: give the seconds to wait, 0 or more")
        return Property.TIMER_DELAY_MS, str(round(delay_s * 1000))
    if deliver_at is not None:
        if deliver_at.tzinfo is None:
            raise MessageError(f"deliver_at {deliver_at} has no time zone: give an aware datetime")
        return Property.TIMER_DELIVER_MS, str(round(deliver_at.timestamp() * 1000))
    if level < 0:
        raise MessageError(f"delay level {level} is negative: give 1 to 18, or 0 for none")
    return Property.DELAY, str(level)


def check_send_topic(topic: str) -> None:
    """Raises MessageError for an illegal name and for topics that only brokers write."""
    check_topic(topic)
    if topic in NOT_ALLOWED_SEND_TOPICS:
        raise MessageError(f"topic {topic!r} is written by brokers only: choose another")


def check_batch_topic(topic: str) -> None:
    """Raises MessageError as `check_send_topic`, and for retry topics, which take no batches."""
    check_send_topic(topic)
    if is_retry_topic(topic):
        raise MessageError(f"retry topic {topic!r} takes no batches: send its messages one by one")


def check_body(body: bytes) -> None:
    """Raises MessageError for what is not bytes, is empty, or larger than 4 MiB."""
    if not isinstance(body, bytes):
        raise MessageError(f"the body is {type(body).__name__}, not bytes: encode it first")
    if not body:
        raise MessageError("the body is empty: RocketMQ stores no message without one")
    if len(body) > BODY_BYTES_MAX:
        raise MessageError(
            f"the body has {len(body)} bytes; at most {BODY_BYTES_MAX} are allowed:"
            " make it smaller, or send where to find it"
        )


def encode_checked(properties: Mapping[str, str]) -> str:
    """Returns properties as text. Raises MessageError when it is no UTF-8, or longer than a stored message can hold."""
    text = encode_properties(properties)
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise MessageError(f"a property has no UTF-8 form: {text[error.start : error.end]!r} in it") from error
    if size > PROPERTIES_BYTES_MAX:
        raise MessageError(f"the properties have {size} bytes together; at most {PROPERTIES_BYTES_MAX} are allowed")
    return text


def _check_properties(properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        if name in RESERVED_PROPERTIES:
            raise MessageError(f"property name {name!r} is reserved by RocketMQ: choose another")
        if not isinstance(name, str) or not name.strip() or NAME_END in name or VALUE_END in name:
            raise MessageError(f"property name {name!r} is blank or holds 0x01 or 0x02")
        _checked_value(name, value)


def _checked_value(name: str, value: str) -> str:
    if not isinstance(value, str) or not value.strip() or NAME_END in value or VALUE_END in value:
        raise MessageError(f"property {name!r} is not a text, is blank, or holds 0x01 or 0x02: {value!r}")
    return value
