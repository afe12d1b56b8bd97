"""Delete markers of timers: which keys are recalled in a slot, for as long as the slot lasts.

A marker names a unique key, or, as RocketMQ's `appendTopicForTimerDeleteKey` has it, real topic + "+" + key. It falls
due before all else in its slot (`store/due_times.py`), and is delivered itself only when the slot is over.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.engine.schedule.timer_runs import Timer
from broker.engine.store.due_times import SLOT_MS, slot_of
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage


class DeleteMarkers:
    """Those of slots that are not over: slot to key to the queue offsets of the markers."""

    def __init__(self) -> None:
        self._slots: dict[int, dict[str, list[int]]] = {}

    def __bool__(self) -> bool:
        return bool(self._slots)

    def remember(self, timer: Timer, marker: StoredMessage) -> None:
        key = marker.properties.get(Property.TIMER_DEL_UNIQKEY, "")
        self._slots.setdefault(slot_of(timer.due_ms), {}).setdefault(key, []).append(timer.queue_offset)

    def recalls(self, timer: Timer, message: StoredMessage) -> bool:
        keys = self._slots.get(slot_of(timer.due_ms))
        key = message.unique_key
        if keys is None or key is None:
            return False
        return key in keys or f"{message.properties.get(Property.REAL_TOPIC)}+{key}" in keys

    def end_slots(self, now_ms: int, first: Timer | None) -> Iterator[int]:
        """The queue offsets of markers that have done their work; `first`: the timer that falls due next."""
        for slot in [slot for slot in self._slots if slot + SLOT_MS < now_ms]:
            if first is None or slot_of(first.due_ms) > slot:
                for queue_offsets in self._slots.pop(slot).values():
                    yield from queue_offsets
