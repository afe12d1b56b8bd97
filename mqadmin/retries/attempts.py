"""What a message that waits for its time says of the attempt that failed. Pure.

A message that a member sends back is kept with its destination in REAL_TOPIC: `%RETRY%<group>`. Others that wait there
are delayed by their senders, and nobody has failed on them.
"""

from __future__ import annotations

from mqadmin.clusters.models import NAME_CHARS_MAX
from mqadmin.clusters.moments import moment_or_none
from mqadmin.deadletters.dead_message import NUL_MARK
from mqadmin.deadletters.models import FAILURE_CLASS_CHARS_MAX, FAILURE_TEXT_CHARS_MAX, KEYS_CHARS_MAX
from mqadmin.retries.models import FailedAttempt
from remoting.wire.names import RETRY_PREFIX, TIMER_TOPIC
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage


def read_attempt(message: StoredMessage, due_ms: int | None) -> FailedAttempt | None:
    """Returns a row without cluster and broker; None where the message is no retry.

    `due_ms`: what the entry of its queue says; a timer tells it itself.
    """
    properties = message.properties
    target = properties.get(Property.REAL_TOPIC, "")
    failed_at = moment_or_none(message.store_timestamp_ms)
    if not target.startswith(RETRY_PREFIX) or failed_at is None:
        return None
    if message.topic == TIMER_TOPIC:
        due_ms = _number(properties.get(Property.TIMER_OUT_MS, ""))
    return FailedAttempt(
        group_name=_text(target.removeprefix(RETRY_PREFIX), NAME_CHARS_MAX),
        topic_name=message.topic,
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        message_id=_text(message.message_id, NAME_CHARS_MAX),
        origin_topic=_text(properties.get(Property.RETRY_TOPIC, ""), NAME_CHARS_MAX),
        tag=_text(message.tags or "", NAME_CHARS_MAX),
        keys=_text(" ".join(message.keys), KEYS_CHARS_MAX),
        attempt_count=message.reconsume_times,
        failed_at=failed_at,
        due_at=moment_or_none(due_ms) if due_ms is not None else None,
        failure_class=_text(properties.get(Property.FAILURE_CLASS, ""), FAILURE_CLASS_CHARS_MAX),
        failure_text=_text(properties.get(Property.FAILURE_TEXT, ""), FAILURE_TEXT_CHARS_MAX),
        failed_member=_text(properties.get(Property.FAILURE_MEMBER, ""), NAME_CHARS_MAX),
        failed_listener=_text(properties.get(Property.FAILURE_LISTENER, ""), NAME_CHARS_MAX),
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _text(text: str, chars_max: int) -> str:
    return text.replace("\0", NUL_MARK)[:chars_max]
