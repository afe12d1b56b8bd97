"""The halves that nobody decided yet, and when each is to be looked at. In memory, about 170 bytes each.

A half is known by its offset in the half queue; all else about it is read from the log when it is needed. `due_ms` is
when its producers are to be asked; `NOT_LOOKED_AT` for one that the start found and whose record was not read yet.

A clock that is set back takes all due times back with it, so that nobody waits longer than intended.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

NOT_LOOKED_AT = 0
# Smaller steps back are how clocks are kept right, and cost at most as much lateness.
STEP_BACK_MS = 1_000
# Entries of the heap that no longer count are cleared away when there are so many more than halves.
_STALE_MAX = 1_024
# A due time and a half's offset in one number, the due time first: half the memory of a pair.
_OFFSET_BITS = 63
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1


class Undecided:
    """`clock`: ms since the epoch. Callers: `Transactions` and its check-back, on the event loop."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._due_ms: dict[int, int] = {}
        self._heap: list[int] = []
        self._latest_ms = clock()

    def __len__(self) -> int:
        return len(self._due_ms)

    def __contains__(self, queue_offset: int) -> bool:
        return queue_offset in self._due_ms

    @property
    def lowest(self) -> int | None:
        """The first in the half queue."""
        return min(self._due_ms, default=None)

    def below(self, queue_offset: int, count: int) -> list[int]:
        """The first of those before `queue_offset` in the half queue, at most `count`."""
        return heapq.nsmallest(count, (offset for offset in self._due_ms if offset < queue_offset))

    def add(self, queue_offset: int, due_ms: int) -> None:
        """Also where it is known already: then it is due at another time now."""
        if self._due_ms.get(queue_offset) == due_ms:
            return
        self._due_ms[queue_offset] = due_ms
        heapq.heappush(self._heap, due_ms << _OFFSET_BITS | queue_offset)
        if len(self._heap) > 2 * len(self._due_ms) + _STALE_MAX:
            self._rebuild()

    def postpone(self, queue_offset: int, due_ms: int) -> None:
        """Unless it was decided meanwhile."""
        if queue_offset in self._due_ms:
            self.add(queue_offset, due_ms)

    def remove(self, queue_offset: int) -> bool:
        """False when it was not there."""
        return self._due_ms.pop(queue_offset, None) is not None

    def due_ms(self, queue_offset: int) -> int:
        """Raises KeyError."""
        return self._due_ms[queue_offset]

    @property
    def next_due_ms(self) -> int | None:
        first = self._first()
        return first[0] if first is not None else None

    def take_due(self, until_ms: int, again_ms: int) -> tuple[int, int] | None:
        """(due time, queue offset) of the most overdue one, None when none is due. It stays undecided, and is due
        again at `again_ms` whatever happens."""
        first = self._first()
        if first is None or first[0] > until_ms:
            return None
        heapq.heappop(self._heap)
        self.add(first[1], again_ms)
        return first

    def _first(self) -> tuple[int, int] | None:
        now_ms = self._clock()
        if now_ms < self._latest_ms - STEP_BACK_MS:
            self._set_back(self._latest_ms - now_ms)
        self._latest_ms = now_ms
        while self._heap:
            due_ms, queue_offset = self._heap[0] >> _OFFSET_BITS, self._heap[0] & _OFFSET_MASK
            if self._due_ms.get(queue_offset) == due_ms:
                return due_ms, queue_offset
            heapq.heappop(self._heap)
        return None

    def _set_back(self, by_ms: int) -> None:
        for queue_offset, due_ms in self._due_ms.items():
            self._due_ms[queue_offset] = max(NOT_LOOKED_AT, due_ms - by_ms)
        self._rebuild()

    def _rebuild(self) -> None:
        self._heap = [due_ms << _OFFSET_BITS | queue_offset for queue_offset, due_ms in self._due_ms.items()]
        heapq.heapify(self._heap)
