"""Delivered copies: what a delay level and a timer have in common when a message comes to its real topic.

RocketMQ's `ScheduleMessageService.messageTimeUp` and `TimerMessageStore.convert`. The copy goes to REAL_TOPIC /
REAL_QID: same body, flags, times and properties, with a fresh tag hash. In `prepared_transaction_offset`, which plain
messages leave at 0, it carries the queue offset after its source: so the log itself tells a start what was delivered.
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

# One step: about 10 ms of appending, or 4 MiB of bodies, so that senders are not held up for long.
STEP_MESSAGES_MAX = 256
STEP_BYTES_MAX = 4 * 1024 * 1024
# What a timer's copy has beyond its source (`TimerMessageStore.convert`); names, numbers and separators.
_ADDED = (Property.TIMER_ENQUEUE_MS, Property.TIMER_DEQUEUE_MS)
_ADDED_BYTES_MAX = 128


def delivered_copy(message: StoredMessage, next_queue_offset: int) -> MessageDraft | None:
    """The message for its real topic; None when the properties don't name one. `next_queue_offset`: after its source.

    The properties stay as they are, DELAY included.
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
    """As `delivered_copy`, with the times at which the timer began and ended to wait."""
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
    """The queue offset of what it is a copy of."""
    return copy.prepared_transaction_offset - 1


def append_copies(
    store: MessageStore, drafts: list[MessageDraft], subject: str
) -> Iterator[tuple[MessageDraft, Appended | None]]:
    """Each with what became of it, as soon as it is stored. Raises StoreError: those behind it are not stored.

    None for what can never be stored; it is left out, so that it does not hold up all that waits behind it.
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
    """What has been stored from there on and claims to be a copy; `property_name` is in all of this kind."""
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
    """Believes nobody who only looks like a copy: counting one too many would lose what waits."""
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
