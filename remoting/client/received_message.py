"""A message as a client got it: pulled from a queue, or sent to it as the reply to a request."""

from __future__ import annotations

from types import MappingProxyType

from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.compression import decompress
from remoting.wire.message_content import MessageContent
from remoting.wire.names import without_namespace
from remoting.wire.stored_message import StoredMessage


class ReceivedMessage(MessageContent, frozen=True, kw_only=True, eq=False):
    """Immutable. `id` is the sender's unique key, else the broker's id; times in ms since the epoch.

    `queue` and `queue_offset` are where it was pulled; a reply has None and -1, since it lies in no queue of ours.
    """

    id: str
    queue: MessageQueue | None = None
    queue_offset: int = -1
    stored_ms: int = 0
    reconsume_times: int = 0


def received(stored: StoredMessage, queue: MessageQueue, namespace: str = "") -> ReceivedMessage:
    """Returns the message that was pulled from `queue`, its topic without the namespace.

    Raises BodyError for a compressed body that is none.
    """
    return ReceivedMessage(
        topic=without_namespace(namespace, stored.topic),
        body=decompress(stored.body, stored.sys_flag),
        properties=MappingProxyType(stored.properties),
        id=stored.message_id,
        queue=queue,
        queue_offset=stored.queue_offset,
        born_ms=stored.born_timestamp_ms,
        stored_ms=stored.store_timestamp_ms,
        reconsume_times=stored.reconsume_times,
    )
