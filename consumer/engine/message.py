"""A message as a listener sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic

from consumer.engine.process_queue import CachedMessage
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.compression import decompress
from remoting.wire.message_content import MessageContent
from remoting.wire.properties import Property

if TYPE_CHECKING:  # for type checkers `Message` alone is `Message[Any]`
    from typing_extensions import TypeVar

    Data = TypeVar("Data", default=Any)
else:
    from typing import TypeVar

    Data = TypeVar("Data")

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Message(MessageContent, Generic[Data], frozen=True, kw_only=True, eq=False):
    """Immutable. For a test of a listener `Message(topic="orders", body=b"{}")` is enough.

    `data` is the body as the type that the listener declares (`body=Order` makes it a `Message[Order]`), the bytes
    themselves where it declares none.

    `topic` is what the producer sent to, also on a retry; `queue` and `queue_offset` are where it was pulled. `id` is
    the producer's unique key, else the broker's id. `reconsume_times`: how often it was sent back.
    """

    body: bytes = b""
    data: Data = None  # type: ignore[assignment]
    properties: Mapping[str, str] = _NOTHING
    id: str = ""
    reconsume_times: int = 0
    queue: MessageQueue | None = None
    queue_offset: int = -1

    def __str__(self) -> str:
        return f"{self.topic} {self.id} ({len(self.body)} B, times {self.reconsume_times})"


def to_message(cached: CachedMessage, topic: str, decode: Callable[[bytes], Any] | None = None) -> Message:
    """`topic` is the original one. Raises BodyError when a compressed body cannot be read, and what `decode` raises."""
    stored = cached.stored
    body = decompress(stored.body, stored.sys_flag)
    properties = stored.properties
    return Message(
        topic=topic,
        body=body,
        data=body if decode is None else decode(body),
        properties=MappingProxyType(properties),
        id=properties.get(Property.UNIQ_KEY) or stored.offset_message_id,
        reconsume_times=cached.reconsume_times,
        born_ms=stored.born_timestamp_ms,
        queue=cached.process_queue.queue,
        queue_offset=stored.queue_offset,
    )
