"""A message on its way out: checked, completed, compressed (RocketMQ's `Validators`, `DefaultMQProducerImpl`).

Pure. Everything that a broker would refuse or silently drop is refused here, before anything is sent, with a
`MessageError` that names the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from remoting.wire.compression import compress
from remoting.wire.errors import MessageError
from remoting.wire.limits import BODY_BYTES_MAX, COMPRESS_BODY_BYTES_MIN, PROPERTIES_BYTES_MAX
from remoting.wire.names import NOT_ALLOWED_SEND_TOPICS, check_topic, is_retry_topic
from remoting.wire.properties import NAME_END, VALUE_END, Property, encode_properties

# Names that RocketMQ gives a meaning: users set them by parameters, or not at all (`MessageConst.STRING_HASH_SET`).
RESERVED_PROPERTIES = frozenset(
    value for name, value in vars(Property).items() if not name.startswith("_") and isinstance(value, str)
) - {Property.SHARDING_KEY}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a batch. `keys` are separated by one blank each; `properties` are the user's own."""

    body: bytes
    tags: str | None = None
    keys: str | Iterable[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    flag: int = 0


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What a send request carries. `body` as it travels; `properties_text` complete."""

    topic: str
    message_id: str
    body: bytes
    properties_text: str
    flag: int
    sys_flag: int
    is_batch: bool = False
    reconsume_times: int | None = None
    max_reconsume_times: int | None = None


def outgoing(
    topic: str,
    message: Message,
    message_id: str,
    *,
    delay_level: int = 0,
    compress_from_bytes: int = COMPRESS_BODY_BYTES_MIN,
) -> Outgoing:
    """Raises MessageError."""
    check_body(message.body)
    properties = complete_properties(message, message_id, delay_level)
    body, sys_flag = message.body, 0
    if len(body) >= compress_from_bytes:
        body, sys_flag = compress(body)
    return Outgoing(topic, message_id, body, checked_text(properties), message.flag, sys_flag)


def complete_properties(message: Message, message_id: str, delay_level: int = 0) -> dict[str, str]:
    """The user's properties and those that our parameters stand for. Raises MessageError."""
    properties = dict(message.properties)
    if properties:
        _check_properties(properties)
    properties[Property.UNIQ_KEY] = message_id
    if message.tags:
        properties[Property.TAGS] = _checked_value(Property.TAGS, message.tags)
    keys = message.keys if isinstance(message.keys, str) else " ".join(message.keys)
    if keys:
        properties[Property.KEYS] = _checked_value(Property.KEYS, keys)
    if delay_level:
        if delay_level < 0:
            raise MessageError(f"delay level {delay_level} is negative: give 1 to 18, or 0 for none")
        properties[Property.DELAY] = str(delay_level)
    return properties


def check_send_topic(topic: str) -> None:
    """Raises MessageError for an illegal name and for topics that only brokers write."""
    check_topic(topic)
    if topic in NOT_ALLOWED_SEND_TOPICS:
        raise MessageError(f"topic {topic!r} is written by brokers only: choose another")


def check_batch_topic(topic: str) -> None:
    check_send_topic(topic)
    if is_retry_topic(topic):
        raise MessageError(f"retry topic {topic!r} takes no batches: send its messages one by one")


def check_body(body: bytes) -> None:
    if not isinstance(body, bytes):
        raise MessageError(f"the body is {type(body).__name__}, not bytes: encode it first")
    if not body:
        raise MessageError("the body is empty: RocketMQ stores no message without one")
    if len(body) > BODY_BYTES_MAX:
        raise MessageError(
            f"the body has {len(body)} bytes; at most {BODY_BYTES_MAX} are allowed:"
            " make it smaller, or send where to find it"
        )


def checked_text(properties: Mapping[str, str]) -> str:
    """As text. Raises MessageError when that is no UTF-8, or longer than a stored message can hold."""
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
