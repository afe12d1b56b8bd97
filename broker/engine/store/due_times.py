"""When a waiting message falls due, from its record alone: what its queue entry holds where others hold a tag hash.

The timer topic (`TimerMessageStore`): one message per line of rmq_sys_wheel_timer, queue 0. The sender's wish stands
in TIMER_DELAY_SEC, else TIMER_DELAY_MS, else TIMER_DELIVER_MS (`HookUtils.transformTimerMessage`); TIMER_OUT_MS names
the slot, the second that Apache waits for. A slot S holds what falls due after S and not later than S + 1000 ms.

A delete marker (TIMER_DEL_UNIQKEY) falls due before anything else of its slot, and its entry is negative.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from remoting.wire.properties import Property

# RocketMQ's `timerPrecisionMs`.
SLOT_MS = 1_000
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}\Z")


def slot_of(due_ms: int) -> int:
    """The slot of what falls due at `due_ms`; a whole second belongs to the slot before, as Apache has it.

    >>> slot_of(10_000), slot_of(10_001), slot_of(11_000)
    (9000, 10000, 10000)
    """
    return (due_ms - 1) // SLOT_MS * SLOT_MS


def wanted_due_ms(properties: Mapping[str, str], now_ms: int) -> int:
    """When a sender wants it delivered. Raises ValueError for what is no number, KeyError where nothing is said."""
    if (seconds := properties.get(Property.TIMER_DELAY_SEC)) is not None:
        return now_ms + _number(seconds) * 1000
    if (delay := properties.get(Property.TIMER_DELAY_MS)) is not None:
        return now_ms + _number(delay)
    return _number(properties[Property.TIMER_DELIVER_MS])


def timer_entry(properties: Mapping[str, str], store_timestamp_ms: int) -> int:
    """The due time of a record in the timer topic, negative for a delete marker; 0 when it says none that makes sense.

    A delay that was told from now on counts from the record's own time, within the slot that it was given.
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
    """As Java's `Long.parseLong`. Raises ValueError."""
    if _NUMBER.match(text) is None:
        raise ValueError(f"{text[:40]!r} is not a number")
    return int(text)
