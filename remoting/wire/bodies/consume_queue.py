"""321 QUERY_CONSUME_QUEUE: entries of a consume queue, for tools that look for a lost message."""

from __future__ import annotations

from remoting.wire.bodies.document import Document
from remoting.wire.bodies.heartbeat import SubscriptionData


class QueueEntry(Document, kw_only=True):
    """`ConsumeQueueData`. `physic_offset`: where in the commit log."""

    # Apache looks only where its queue entries have extensions; ours have none.
    eval: bool = False
    physic_offset: int
    physic_size: int
    tags_code: int


class QueueEntries(Document, kw_only=True):
    """`QueryConsumeQueueResponseBody`. Both indices are queue offsets; the largest is one past the last entry."""

    filter_data: str | None = None
    max_queue_index: int
    min_queue_index: int
    queue_data: list[QueueEntry] = []  # noqa: RUF012 - msgspec copies a default per instance
    subscription_data: SubscriptionData | None = None
