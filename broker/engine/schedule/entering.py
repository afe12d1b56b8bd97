"""How a message enters the schedule (`HookUtils.handleScheduleMessage`): by a delay level, or with a delivery time.

Its destination moves into the properties REAL_TOPIC and REAL_QID, and it is stored in the queue of its level or that of
the timers. Its consume-queue entry holds the due time where other entries hold a tag hash.
"""

from __future__ import annotations

from broker.engine.schedule.levels import DelayLevels
from broker.engine.store.due_times import slot_of, wanted_due_ms
from broker.engine.store.values import MessageDraft
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.names import SCHEDULE_TOPIC, TIMER_TOPIC
from remoting.wire.properties import Property

TIMER_PROPERTIES = (Property.TIMER_DELIVER_MS, Property.TIMER_DELAY_MS, Property.TIMER_DELAY_SEC)
_TIMER_NAMES = frozenset(TIMER_PROPERTIES)


def delay_level(properties: dict[str, str]) -> int:
    """Returns the delay level; 0 for a message that is not to be delayed. Raises MessageError when it is no number.

    Apache's broker answers SYSTEM_ERROR there, on which its producers try the next queue, in vain.
    """
    text = properties.get(Property.DELAY)
    if text is None:
        return 0
    try:
        return max(0, int(text))
    except ValueError:
        raise MessageError(f"the delay level {text!r} is not a number") from None


def wants_timer(properties: dict[str, str]) -> bool:
    """Returns whether the message asks for a delivery time and has not waited for it yet.

    A delay level wins over it: callers look for that first.
    """
    return not _TIMER_NAMES.isdisjoint(properties) and Property.TIMER_OUT_MS not in properties


def enter_timer(draft: MessageDraft, properties: dict[str, str], now_ms: int, max_delay_s: int) -> bool:
    """Turns `draft` into a waiting timer; returns False when its time has come already, and it is stored as it is.

    Raises MessageError (MESSAGE_ILLEGAL) for a time that is no number or too far away, and for a delete marker
    (TIMER_DEL_UNIQKEY) whose time has come.
    """
    try:
        due_ms = wanted_due_ms(properties, now_ms)
    except ValueError as error:
        raise _illegal_timer(max_delay_s, str(error)) from error
    if due_ms - now_ms > max_delay_s * 1000:
        raise _illegal_timer(max_delay_s, f"{due_ms - now_ms} ms were asked for")
    is_marker = Property.TIMER_DEL_UNIQKEY in properties
    if due_ms <= now_ms:
        if is_marker:
            raise _illegal_timer(max_delay_s, f"its time was {now_ms - due_ms} ms ago")
        return False
    slot = slot_of(due_ms)
    properties[Property.TIMER_OUT_MS] = str(slot)
    properties[Property.REAL_TOPIC] = draft.topic
    properties[Property.REAL_QID] = str(draft.queue_id)
    draft.topic = TIMER_TOPIC
    draft.queue_id = 0
    draft.set_properties(properties)
    draft.tags_code = -(slot + 1) if is_marker else due_ms
    return True


def _illegal_timer(max_delay_s: int, why: str) -> MessageError:
    return MessageError(
        f"timer message illegal, the delay time should not be bigger than the max delay {max_delay_s * 1000}ms; or if"
        f" set del msg, the delay time should be bigger than the current time: {why}",
        ResponseCode.MESSAGE_ILLEGAL,
    )


def enter_schedule(
    draft: MessageDraft, properties: dict[str, str], level: int, levels: DelayLevels, now_ms: int
) -> None:
    """Turns `draft`, whose properties are `properties`, into a message that waits at delay level `level` > 0."""
    level = levels.clamp(level)
    for name in TIMER_PROPERTIES:
        properties.pop(name, None)
    properties[Property.DELAY] = str(level)
    properties[Property.REAL_TOPIC] = draft.topic
    properties[Property.REAL_QID] = str(draft.queue_id)
    draft.topic = SCHEDULE_TOPIC
    draft.queue_id = level - 1
    draft.set_properties(properties)
    draft.tags_code = now_ms + levels.delay_ms(level)
