"""HEART_BEAT (34), as Java, Go and C++ write it (`HeartbeatData`)."""

from __future__ import annotations

from typing import Any

import msgspec

from remoting.wire.bodies.document import Document, convert, read_object
from remoting.wire.command import Body
from remoting.wire.limits import LENIENT_BODY_BYTES_MAX

CONSUME_TYPES = ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP")
MESSAGE_MODELS = ("BROADCASTING", "CLUSTERING")
CONSUME_FROM_WHERES = (
    "CONSUME_FROM_LAST_OFFSET",
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
)
_ENUMS = {
    "consumeType": CONSUME_TYPES,
    "messageModel": MESSAGE_MODELS,
    "consumeFromWhere": CONSUME_FROM_WHERES,
}


class SubscriptionData(Document, kw_only=True):
    """`sub_version` (ms; Go: ns) decides which of two members' expressions the broker keeps: the larger."""

    class_filter_mode: bool = False
    code_set: list[int] = []  # noqa: RUF012 - msgspec copies a default per instance
    expression_type: str = "TAG"
    sub_string: str = "*"
    sub_version: int = 0
    tags_set: list[str] = []  # noqa: RUF012
    topic: str


class ConsumerData(Document, kw_only=True):
    """A consumer group of a client."""

    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    consume_type: str = "CONSUME_PASSIVELY"
    group_name: str
    message_model: str = "CLUSTERING"
    subscription_data_set: list[SubscriptionData] = []  # noqa: RUF012
    unit_mode: bool = False


class ProducerData(Document, kw_only=True):
    """A producer group of a client."""

    group_name: str


class HeartbeatData(Document, kw_only=True):
    """`without_sub`: subscriptions are left out because the broker knows them (heartbeat V2)."""

    client_id: str = msgspec.field(default="", name="clientID")
    consumer_data_set: list[ConsumerData] = []  # noqa: RUF012
    heartbeat_fingerprint: int = 0
    producer_data_set: list[ProducerData] = []  # noqa: RUF012
    without_sub: bool = False


def read_heartbeat(body: Body) -> HeartbeatData:
    """Reads a heartbeat; accepts enum ordinals (C++), unknown enum names, texts for numbers and `$ref`.

    Raises BodyError.
    """
    value = read_object("HeartbeatData", body, LENIENT_BODY_BYTES_MAX)
    consumers = value.get("consumerDataSet", [])
    for consumer in consumers if isinstance(consumers, list) else ():
        if isinstance(consumer, dict):
            _name_enums(consumer)
    return convert(HeartbeatData, value)


def _name_enums(consumer: dict[str, Any]) -> None:
    """Replaces ordinals by names; drops what is unknown, so that the default holds (Java reads null)."""
    for key, names in _ENUMS.items():
        value = consumer.get(key)
        if type(value) is int and 0 <= value < len(names):
            consumer[key] = names[value]
        elif value not in names:
            consumer.pop(key, None)
