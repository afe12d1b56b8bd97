"""Delivered copies: what delay levels and timers share when a waiting message is appended to its real topic.

RocketMQ's `ScheduleMessageService.messageTimeUp` and `TimerMessageStore.convert`. The copy goes to REAL_TOPIC /
REAL_QID with the same body, flags, times and properties, and with its tag hash computed anew. Its
`prepared_transaction_offset`, which plain messages leave at 0, holds the queue offset after its source message's. So
recovery can read from the log alone which messages were delivered.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from broker.engine.store.due_times import SLOT_MS
from broker.engine.store.errors import RecordRefused
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import Appended, MessageDraft
from remoting.wire.limits import PROPERTIES_BYTES_MAX
from remoting.wire.properties import Property, encode_properties
from remoting.wire.stored_message import StoredMessage
from remoting.wire.tags import tags_code

logger = logging.getLogger(__name__)

# Limits of one step: about 10 ms of appending, or 4 MiB of bodies, so that senders are not held up for long.
STEP_MESSAGES_MAX = 256
STEP_BYTES_MAX = 4 * 1024 * 1024
# The properties that a timer's copy has beyond its source (`TimerMessageStore.convert`), and the most bytes that their
# names, values and separators take.
_ADDED = (Property.TIMER_ENQUEUE_MS, Property.TIMER_DEQUEUE_MS)
_ADDED_BYTES_MAX = 128


def delivered_copy(message: StoredMessage, next_queue_offset: int) -> MessageDraft | None:
    """Returns the copy of `message` for its real topic; None when its properties don't name one.

    `next_queue_offset`: the queue offset after the message's own. The properties stay as they are, DELAY included.
    """
    properties = message.properties
    topic, queue_id = properties.get(Property.REAL_TOPIC), properties.get(Property.REAL_QID, "")
    if topic is None or not queue_id.isdecimal():
        return None
    return MessageDraft(
        topic=topic,
        queue_id=int(queue_id),
        body=message.body,
        born_host=message.born_host,
        store_host=message.store_host,
        born_timestamp_ms=message.born_timestamp_ms,
        flag=message.flag,
        sys_flag=message.sys_flag,
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=next_queue_offset,
        properties_text=message.properties_text,
        tags_code=tags_code(message.tags),
    )


def timer_copy(message: StoredMessage, next_queue_offset: int, now_ms: int) -> MessageDraft | None:
    """Returns the same as `delivered_copy`, with the times at which the timer began and ended to wait.

    The times are left out where the properties have no room for them.
    """
    draft = delivered_copy(message, next_queue_offset)
    if draft is None:
        return None
    properties = dict(message.properties)
    if len(message.properties_text.encode("utf-8", "replace")) + _ADDED_BYTES_MAX <= PROPERTIES_BYTES_MAX:
        properties[Property.TIMER_ENQUEUE_MS] = str(message.store_timestamp_ms // SLOT_MS * SLOT_MS)
        properties[Property.TIMER_DEQUEUE_MS] = str(now_ms)
    draft.properties_text = encode_properties(properties)
    return draft


def source_offset(copy: MessageDraft | StoredMessage) -> int:
    """Returns the queue offset of the waiting message that `copy` was made from."""
    return copy.prepared_transaction_offset - 1


def append_copies(
    store: MessageStore, drafts: list[MessageDraft], subject: str
) -> Iterator[tuple[MessageDraft, Appended | None]]:
    """Appends the drafts, and yields each with its place in the log as soon as it is stored.

    Yields None as the place of a draft that can never be stored: it is left out, so that it does not hold up all
    messages that wait behind it. Raises StoreError; the drafts that were not yielded before are not stored.
    """
    if not drafts:
        return
    try:
        appended = store.append_batch(drafts)
    except RecordRefused as error:
        if len(drafts) > 1:
            for draft in drafts:
                yield from append_copies(store, [draft], subject)
            return
        logger.error("%s %d cannot be delivered: %s", subject, source_offset(drafts[0]), error)
        yield drafts[0], None
        return
    yield from zip(drafts, appended, strict=True)


def copies_from(
    store: MessageStore, commit_log_offset: int, waiting_topic: str, property_name: str
) -> Iterator[StoredMessage]:
    """Yields the messages stored from `commit_log_offset` on that look like delivered copies, by their fields.

    `waiting_topic`: where messages of this kind wait. `property_name`: a property that all of them have.
    """
    if commit_log_offset >= store.max_commit_log_offset:
        return
    for record in store.records_from(commit_log_offset):
        is_plain = record.prepared_transaction_offset <= 0 or property_name not in record.properties_text
        if is_plain or record.topic == waiting_topic:
            continue
        copy = store.message_at(record.commit_log_offset)
        if copy is not None:
            yield copy


def is_copy_from(store: MessageStore, copy: StoredMessage, waiting_topic: str, queue_id: int) -> bool:
    """Returns whether `copy` equals its source in `waiting_topic`: same body, real topic and properties.

    A message that only looks like a copy must not count as a delivery: the message that waits would be lost.
    """
    entry = store.queue_entry(waiting_topic, queue_id, source_offset(copy))
    source = store.message_at(entry[0]) if entry is not None else None
    return (
        source is not None
        and source.body == copy.body
        and source.properties.get(Property.REAL_TOPIC) == copy.topic
        and _without_added(source) == _without_added(copy)
    )


def _without_added(message: StoredMessage) -> dict[str, str]:
    return {name: value for name, value in message.properties.items() if name not in _ADDED}
