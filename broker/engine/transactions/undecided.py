"""The undecided halves, and when each is to be checked. In memory, about 170 bytes each.

A half is known by its queue offset in the half queue; everything else about it is read from the log when it is needed.
`due_ms` is when its producers are to be asked; `DUE_TIME_UNKNOWN` for one that recovery found and whose record was not
read yet.

When the clock is set back, all due times are set back with it, so that no check is later than intended.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

DUE_TIME_UNKNOWN = 0
# Smaller steps back are normal corrections of a clock, and make checks late by no more than that.
STEP_BACK_MS = 1_000
# The heap is rebuilt when it has so many entries that no longer count, beyond as many as there are halves.
STALE_MAX = 1_024
# A due time and a half's offset in one number, the due time first: half the memory of a pair.
_OFFSET_BITS = 63
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1


class Undecided:
    """The undecided halves by queue offset, and in the order in which they are due.

    Callers: `Transactions` and its check-back, on the event loop.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        """`clock`: ms since the epoch."""
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
        """Returns the lowest queue offset, None when no half is undecided."""
        return min(self._due_ms, default=None)

    def below(self, queue_offset: int, count: int) -> list[int]:
        """Returns the lowest queue offsets before `queue_offset`, at most `count` of them."""
        return heapq.nsmallest(count, (offset for offset in self._due_ms if offset < queue_offset))

    def add(self, queue_offset: int, due_ms: int) -> None:
        """Adds a half that is due at `due_ms`; one that is known already is due at that time from now on."""
        if self._due_ms.get(queue_offset) == due_ms:
            return
        self._due_ms[queue_offset] = due_ms
        heapq.heappush(self._heap, due_ms << _OFFSET_BITS | queue_offset)
        if len(self._heap) > 2 * len(self._due_ms) + STALE_MAX:
            self._rebuild()

    def postpone(self, queue_offset: int, due_ms: int) -> None:
        """Sets when a half is due, unless it was decided meanwhile."""
        if queue_offset in self._due_ms:
            self.add(queue_offset, due_ms)

    def remove(self, queue_offset: int) -> bool:
        """Removes a half that was decided; returns False when it was not undecided."""
        return self._due_ms.pop(queue_offset, None) is not None

    def due_ms(self, queue_offset: int) -> int:
        """Returns when a half is due. Raises KeyError."""
        return self._due_ms[queue_offset]

    @property
    def next_due_ms(self) -> int | None:
        first = self._first()
        return first[0] if first is not None else None

    def take_due(self, until_ms: int, again_ms: int) -> tuple[int, int] | None:
        """Returns (due time, queue offset) of the most overdue half, None when none is due by `until_ms`.

        The half stays undecided, and is due again at `again_ms`.
        """
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
            self._due_ms[queue_offset] = max(DUE_TIME_UNKNOWN, due_ms - by_ms)
        self._rebuild()

    def _rebuild(self) -> None:
        self._heap = [due_ms << _OFFSET_BITS | queue_offset for queue_offset, due_ms in self._due_ms.items()]
        heapq.heapify(self._heap)
