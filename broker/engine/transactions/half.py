"""Half messages and the messages made from them: pure functions from message to message (`TransactionalMessageBridge`).

A half message waits in queue 0 of RMQ_SYS_TRANS_HALF_TOPIC; its properties REAL_TOPIC and REAL_QID name where it goes
once committed. Its end is recorded by an op message in queue 0 of RMQ_SYS_TRANS_OP_HALF_TOPIC: tag `d`, the body names
half queue offsets as `17,18,`.

Each check appends the half anew, with TRANSACTION_CHECK_TIMES raised by one; that is another *version* of it, and the
previous version counts as ended. The successor of a version names it in its field `prepared_transaction_offset`:

    the committed copy          commit-log offset of the version that was committed (RocketMQ's own rule)
    the next version, and       commit-log offset of the previous version + 1 (our own; 0 stays "no predecessor",
    the one given up            and RocketMQ does not look at the field there)
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.engine.schedule.entering import TIMER_PROPERTIES
from broker.engine.store.values import MessageDraft
from remoting.wire.message_id import Host
from remoting.wire.names import CHECK_MAX_TIME_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from remoting.wire.properties import Property, encode_properties
from remoting.wire.stored_message import (
    TRANSACTION_COMMIT,
    TRANSACTION_MASK,
    StoredMessage,
)
from remoting.wire.tags import tags_code

HALF_QUEUE = 0
REMOVE_TAG = "d"
OFFSET_SEPARATOR = ","
_DESTINATION = (Property.REAL_TOPIC, Property.REAL_QID)
# The room that TRANSACTION_CHECK_TIMES will take in a half's properties; kept free when the half is sent.
CHECK_TIMES_CHARS = len(Property.TRANSACTION_CHECK_TIMES) + 12
# Longer numbers are not read; as seconds, this many digits are three hundred centuries.
_DIGITS_MAX = 12


def is_half(properties: dict[str, str], reconsume_times: int) -> bool:
    """Returns whether a message that a client sends is a half message, which waits for its transaction.

    One with reconsume times and a delay level is not: it is a retry that an old client made from a committed message,
    keeping its property TRAN_MSG (`SendMessageProcessor`).
    """
    if properties.get(Property.TRAN_MSG, "").lower() != "true":
        return False
    return not (reconsume_times > 0 and _number(properties.get(Property.DELAY)) > 0)


def enter_half_topic(draft: MessageDraft, properties: dict[str, str]) -> None:
    """Turns `draft`, whose properties are `properties`, into the half message.

    Delay properties are dropped. RocketMQ's own producer sends none, because Apache's broker would lose the message.
    """
    for name in (Property.DELAY, *TIMER_PROPERTIES):
        properties.pop(name, None)
    unique_key = properties.get(Property.UNIQ_KEY)
    if unique_key:
        properties[Property.TRANSACTION_ID] = unique_key
    properties[Property.REAL_TOPIC] = draft.topic
    properties[Property.REAL_QID] = str(draft.queue_id)
    draft.topic = HALF_TOPIC
    draft.queue_id = HALF_QUEUE
    draft.sys_flag &= ~TRANSACTION_MASK
    draft.set_properties(properties)


def immunity_ms(properties: dict[str, str], timeout_ms: int) -> int:
    """Returns how long after sending a half is not checked: `timeout_ms`, or longer if the message asks for it."""
    immunity_s = properties.get(Property.CHECK_IMMUNITY_TIME_IN_SECONDS)
    return max(timeout_ms, 1000 * _number(immunity_s))


def check_times(half: StoredMessage) -> int:
    """Returns how often the half was checked."""
    return _number(half.properties.get(Property.TRANSACTION_CHECK_TIMES))


def destination(half: StoredMessage) -> tuple[str, int] | None:
    """Returns (real topic, queue id) of the half; None when it names none, and so is no half message."""
    topic, queue_id = half.properties.get(Property.REAL_TOPIC), half.properties.get(Property.REAL_QID, "")
    if half.topic != HALF_TOPIC or topic is None or not (queue_id.isascii() and queue_id.isdecimal()):
        return None
    return topic, int(queue_id)


def committed_copy(half: StoredMessage, topic: str, queue_id: int) -> MessageDraft:
    """Returns the message that consumers get (`EndTransactionProcessor.endMessageTransaction`).

    Its properties stay, TRAN_MSG included, except REAL_TOPIC and REAL_QID.
    """
    draft = _copy(half, topic, queue_id)
    shown = {name: value for name, value in half.properties.items() if name not in _DESTINATION}
    draft.properties_text = encode_properties(shown)
    draft.sys_flag = half.sys_flag & ~TRANSACTION_MASK | TRANSACTION_COMMIT
    draft.prepared_transaction_offset = half.commit_log_offset
    return draft


def next_version(half: StoredMessage, *, is_checked: bool) -> MessageDraft:
    """Returns the next version of the half, with TRANSACTION_CHECK_TIMES raised by one if `is_checked`.

    Unlike Apache's it keeps the user's flag and the reconsume times, so that a check changes nothing of the message.
    """
    draft = _copy(half, HALF_TOPIC, HALF_QUEUE)
    draft.prepared_transaction_offset = half.commit_log_offset + 1
    if is_checked:
        counted = {Property.TRANSACTION_CHECK_TIMES: str(check_times(half) + 1)}
        draft.properties_text = encode_properties({**half.properties, **counted})
    return draft


def given_up(half: StoredMessage) -> MessageDraft:
    """Returns the copy for TRANS_CHECK_MAX_TIME_TOPIC of a half that is given up; it is never delivered."""
    draft = _copy(half, CHECK_MAX_TIME_TOPIC, 0)
    draft.prepared_transaction_offset = half.commit_log_offset + 1
    return draft


def resumed(record: StoredMessage) -> MessageDraft:
    """Returns the half again, made from one that was given up (`AdminBrokerProcessor.resumeCheckHalfMessage`)."""
    draft = _copy(record, HALF_TOPIC, HALF_QUEUE)
    draft.prepared_transaction_offset = record.commit_log_offset + 1
    draft.properties_text = encode_properties({**record.properties, Property.TRANSACTION_CHECK_TIMES: "0"})
    return draft


def op_message(half_offsets: Iterable[int], host: Host, now_ms: int) -> MessageDraft:
    """Returns the op message that says that these halves have ended."""
    body = "".join(f"{offset}{OFFSET_SEPARATOR}" for offset in half_offsets)
    return MessageDraft(
        topic=OP_HALF_TOPIC,
        queue_id=HALF_QUEUE,
        body=body.encode(),
        born_host=host,
        store_host=host,
        born_timestamp_ms=now_ms,
        properties_text=encode_properties({Property.WAIT: "true", Property.TAGS: REMOVE_TAG}),
        tags_code=tags_code(REMOVE_TAG),
    )


def ended_offsets(op: StoredMessage) -> list[int]:
    """Returns the half queue offsets that an op message names; what is no number is skipped, as in RocketMQ."""
    if op.tags != REMOVE_TAG:
        return []
    words = op.body.decode("ascii", "replace").split(OFFSET_SEPARATOR)
    return [int(word) for word in words if word.isascii() and word.isdecimal()]


def follows_on(topic: str, sys_flag: int, prepared_transaction_offset: int) -> int | None:
    """Returns the commit-log offset of the half version whose successor a record claims to be; None for other records.

    Only `is_successor` says whether the claim is true.
    """
    if topic in (HALF_TOPIC, CHECK_MAX_TIME_TOPIC):
        return prepared_transaction_offset - 1 if prepared_transaction_offset > 0 else None
    return prepared_transaction_offset if sys_flag & TRANSACTION_MASK == TRANSACTION_COMMIT else None


def is_successor(record: StoredMessage, half: StoredMessage) -> bool:
    """Returns whether `record` really was made from `half`: any sender may set a commit's flag and the offset."""
    place = destination(half)
    if place is None or record.unique_key != half.unique_key or record.body != half.body:
        return False
    if record.topic in (HALF_TOPIC, CHECK_MAX_TIME_TOPIC):
        return True
    return (record.topic, record.queue_id) == place and Property.TRAN_MSG in record.properties


def _copy(half: StoredMessage, topic: str, queue_id: int) -> MessageDraft:
    return MessageDraft(
        topic=topic,
        queue_id=queue_id,
        body=half.body,
        born_host=half.born_host,
        store_host=half.store_host,
        born_timestamp_ms=half.born_timestamp_ms,
        flag=half.flag,
        sys_flag=half.sys_flag,
        reconsume_times=half.reconsume_times,
        properties_text=half.properties_text,
        tags_code=tags_code(half.tags),
    )


def _number(text: str | None) -> int:
    """Parses a number; returns 0 for a text that is none, as Java's parsing with a caught exception does."""
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > _DIGITS_MAX:
        return 0
    return int(text)
