"""A message as a listener sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import msgspec

from consumer.engine.process_queue import CachedMessage
from consumer.engine.subscriptions import original_topic
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.compression import decompress
from remoting.wire.properties import Property

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Message(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Immutable. For a test of a listener `Message(topic="orders", body=b"{}")` is enough.

    `topic` is what the producer sent to, also on a retry; `queue` and `queue_offset` are where it was pulled. `id` is
    the producer's unique key, else the broker's id. `reconsume_times`: how often it was sent back.
    """

    topic: str
    body: bytes
    properties: Mapping[str, str] = _NOTHING
    id: str = ""
    reconsume_times: int = 0
    born_ms: int = 0
    queue: MessageQueue | None = None
    queue_offset: int = -1

    @property
    def text(self) -> str:
        """Returns the body as UTF-8 text. Raises UnicodeDecodeError."""
        return self.body.decode()

    def json(self) -> Any:
        """Returns the body parsed as JSON. Raises ValueError."""
        return json.loads(self.body)

    @property
    def tags(self) -> str | None:
        return self.properties.get(Property.TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.properties.get(Property.KEYS, "").split())

    @property
    def born_at(self) -> datetime:
        """Returns when the producer made it, by the producer's clock."""
        return datetime.fromtimestamp(self.born_ms / 1000, UTC)

    def __str__(self) -> str:
        return f"{self.topic} {self.id} ({len(self.body)} B, times {self.reconsume_times})"


def to_message(cached: CachedMessage) -> Message:
    """Raises BodyError when a compressed body cannot be read."""
    stored = cached.stored
    return Message(
        topic=original_topic(stored),
        body=decompress(stored.body, stored.sys_flag),
        properties=MappingProxyType(stored.properties),
        id=stored.message_id,
        reconsume_times=cached.reconsume_times,
        born_ms=stored.born_timestamp_ms,
        queue=cached.process_queue.queue,
        queue_offset=stored.queue_offset,
    )
