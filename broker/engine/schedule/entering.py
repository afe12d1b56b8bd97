"""How a message enters the schedule (`HookUtils.transformDelayLevelMessage`).

Its destination moves into REAL_TOPIC and REAL_QID, its place becomes the queue of its level, and where other entries
hold a tag hash its entry holds the due time.
"""

from __future__ import annotations

from broker.engine.schedule.levels import DelayLevels
from broker.engine.store.values import MessageDraft
from remoting.wire.errors import MessageError
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.properties import Property, encode_properties

TIMER_PROPERTIES = (Property.TIMER_DELIVER_MS, Property.TIMER_DELAY_MS, Property.TIMER_DELAY_SEC)


def delay_level(properties: dict[str, str]) -> int:
    """0 for a message that is not to be delayed. Raises MessageError for garbage.

    Java answers SYSTEM_ERROR there, which its own producers try again on the next queue, in vain.
    """
    text = properties.get(Property.DELAY)
    if text is None:
        return 0
    try:
        return max(0, int(text))
    except ValueError:
        raise MessageError(f"the delay level {text!r} is not a number") from None


def wants_timer(properties: dict[str, str]) -> bool:
    """Whether a sender asks for an exact time; a delay level wins over it."""
    return any(name in properties for name in TIMER_PROPERTIES)


def enter_schedule(
    draft: MessageDraft, properties: dict[str, str], level: int, levels: DelayLevels, now_ms: int
) -> None:
    """Turns `draft`, whose properties are `properties`, into the waiting message. `level` > 0."""
    level = levels.clamp(level)
    for name in TIMER_PROPERTIES:
        properties.pop(name, None)
    properties[Property.DELAY] = str(level)
    properties[Property.REAL_TOPIC] = draft.topic
    properties[Property.REAL_QID] = str(draft.queue_id)
    draft.topic = SCHEDULE_TOPIC
    draft.queue_id = level - 1
    draft.properties_text = encode_properties(properties)
    draft.tags_code = now_ms + levels.delay_ms(level)
