"""Computes the due time of a message in the timer topic from its record; its queue entry holds it as the tags code.

Timer messages (`TimerMessageStore`) lie in queue 0 of rmq_sys_wheel_timer. The time that the sender set is in the
property TIMER_DELAY_SEC, else TIMER_DELAY_MS, else TIMER_DELIVER_MS (`HookUtils.transformTimerMessage`). TIMER_OUT_MS
names the slot, the second at which Apache delivers: slot S holds messages due after S and not later than S + 1000 ms.

A delete marker (TIMER_DEL_UNIQKEY) falls due before the other messages of its slot, and its entry is negative.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from remoting.wire.properties import Property

# RocketMQ's `timerPrecisionMs`.
SLOT_MS = 1_000
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}\Z")


def slot_of(due_ms: int) -> int:
    """Returns the slot of a message due at `due_ms`; a whole second belongs to the slot before, as in Apache RocketMQ.

    >>> slot_of(10_000), slot_of(10_001), slot_of(11_000)
    (9000, 10000, 10000)
    """
    return (due_ms - 1) // SLOT_MS * SLOT_MS


def wanted_due_ms(properties: Mapping[str, str], now_ms: int) -> int:
    """Returns the delivery time that the sender set.

    Raises ValueError when it is not a number, KeyError when none of the three properties is set.
    """
    if (seconds := properties.get(Property.TIMER_DELAY_SEC)) is not None:
        return now_ms + _number(seconds) * 1000
    if (delay := properties.get(Property.TIMER_DELAY_MS)) is not None:
        return now_ms + _number(delay)
    return _number(properties[Property.TIMER_DELIVER_MS])


def timer_entry(properties: Mapping[str, str], store_timestamp_ms: int) -> int:
    """Returns the due time of a record in the timer topic, negative for a delete marker; 0 if it has no valid one.

    A delay counts from the record's store timestamp, and the result is kept within the slot of TIMER_OUT_MS.
    """
    try:
        slot = _number(properties[Property.TIMER_OUT_MS])
        if Property.TIMER_DEL_UNIQKEY in properties:
            return -(slot + 1)
        due_ms = wanted_due_ms(properties, store_timestamp_ms)
    except (KeyError, ValueError):
        return 0
    return min(max(due_ms, slot + 1), slot + SLOT_MS)


def _number(text: str) -> int:
    """Parses an integer as Java's `Long.parseLong` does. Raises ValueError."""
    if _NUMBER.match(text) is None:
        raise ValueError(f"{text[:40]!r} is not a number")
    return int(text)
