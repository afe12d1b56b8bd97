"""Delete markers of timers: the unique keys of recalled messages, by slot, until the slot is over.

A marker names a unique key, or, as RocketMQ's `appendTopicForTimerDeleteKey` has it, real topic + "+" + key. It falls
due before all messages of its slot (`store/due_times.py`), and counts as delivered only when the slot is over.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.engine.schedule.timer_runs import Timer
from broker.engine.store.due_times import SLOT_MS, slot_of
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage


class DeleteMarkers:
    """The delete markers of slots that are not over: slot to key to the queue offsets of the markers."""

    def __init__(self) -> None:
        self._slots: dict[int, dict[str, list[int]]] = {}

    def __bool__(self) -> bool:
        return bool(self._slots)

    def remember(self, timer: Timer, marker: StoredMessage) -> None:
        """Adds `marker`, a message that waits as `timer`."""
        key = marker.properties.get(Property.TIMER_DEL_UNIQKEY, "")
        self._slots.setdefault(slot_of(timer.due_ms), {}).setdefault(key, []).append(timer.queue_offset)

    def recalls(self, timer: Timer, message: StoredMessage) -> bool:
        """Returns whether a marker of the same slot names `message`, which waits as `timer`."""
        keys = self._slots.get(slot_of(timer.due_ms))
        key = message.unique_key
        if keys is None or key is None:
            return False
        return key in keys or f"{message.properties.get(Property.REAL_TOPIC)}+{key}" in keys

    def end_slots(self, now_ms: int, first: Timer | None) -> Iterator[int]:
        """Removes the markers of slots that are over, and yields their queue offsets.

        `first`: the timer that falls due next; a slot that it lies in, or before, is not over.
        """
        for slot in [slot for slot in self._slots if slot + SLOT_MS < now_ms]:
            if first is None or slot_of(first.due_ms) > slot:
                for queue_offsets in self._slots.pop(slot).values():
                    yield from queue_offsets
