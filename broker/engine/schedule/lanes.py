"""A delay level and its lanes: stretches of its queue in which all wait equally long.

A level has one lane until the table of levels changes while something waits in it; then its queue goes on in a new one,
so that what waits for 1 s now is not behind what was promised 2 h. Pure: what the queue holds is told by the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import dropwhile

# An entry that is further away than its level can explain was stored before the clock was set back. By so much it just
# waits longer; beyond it, it waits its level's delay from when that is noticed. Either way never less.
CLOCK_JUMP_TOLERANCE_MS = 60_000


@dataclass(slots=True)
class Lane:
    """Queue offsets `start` to `end` of a level, all waiting equally long; `end` is None for the lane that grows.

    `next_offset`: the queue offset to deliver next; `stored_due_ms` the due time it was stored with, None when none
    waits. When it is due is asked anew each time: the clock may have been set back since. `set_back_ms`: when that was
    noticed of what waits now.
    """

    delay_ms: int
    start: int = 0
    end: int | None = None
    next_offset: int = 0
    stored_due_ms: int | None = None
    set_back_ms: int | None = None

    def due_ms(self, stored_due_ms: int, now_ms: int) -> int:
        ahead_ms = stored_due_ms - self.delay_ms - now_ms
        if ahead_ms <= 0:
            self.set_back_ms = None
            return stored_due_ms
        if self.set_back_ms is None and ahead_ms <= CLOCK_JUMP_TOLERANCE_MS:
            return stored_due_ms
        self.set_back_ms = now_ms if self.set_back_ms is None else min(self.set_back_ms, now_ms)
        return min(stored_due_ms, self.set_back_ms + self.delay_ms)

    def next_due_ms(self, now_ms: int) -> int | None:
        return None if self.stored_due_ms is None else self.due_ms(self.stored_due_ms, now_ms)


@dataclass(slots=True)
class Level:
    """`lanes`: the oldest first, at least one; the first is not done unless it is the last."""

    number: int
    lanes: list[Lane]
    late_ms: int = -1

    @property
    def queue_id(self) -> int:
        return self.number - 1

    @property
    def next_offset(self) -> int:
        return self.lanes[0].next_offset

    def first_lane(self, now_ms: int) -> tuple[int, Lane] | None:
        """The lane of which something falls due first, and when; None when nothing waits."""
        dues = [(due_ms, lane) for lane in self.lanes if (due_ms := lane.next_due_ms(now_ms)) is not None]
        return min(dues, key=lambda due: due[0], default=None)

    def next_due_ms(self, now_ms: int) -> int | None:
        first = self.first_lane(now_ms)
        return None if first is None else first[0]

    def lane_of(self, queue_offset: int) -> Lane | None:
        """The lane in which this one has not been delivered yet."""
        for lane in self.lanes:
            if lane.next_offset <= queue_offset and (lane.end is None or queue_offset < lane.end):
                return lane
        return None


def delay_of(number: int, delays_ms: tuple[int, ...]) -> int:
    """How long level `number` waits; one that the table does not have waits no longer than all that it has."""
    return delays_ms[number - 1] if number <= len(delays_ms) else max(delays_ms)


def without_done(lanes: list[Lane]) -> list[Lane]:
    """Those from the first on in which something waits. A done one behind it stays: progress tells how far it came."""
    return list(dropwhile(lambda lane: lane.end is not None and lane.next_offset >= lane.end, lanes))


def split_at(lanes: list[Lane], starts: list[int]) -> list[Lane]:
    """The same stretches, with a lane of its own from each of `starts` on. Nothing is counted as delivered yet."""
    split: list[Lane] = []
    for lane in lanes:
        rest = lane
        for start in sorted(starts):
            if rest.start < start and (rest.end is None or start < rest.end):
                split.append(Lane(rest.delay_ms, rest.start, start))
                rest = Lane(rest.delay_ms, start, rest.end)
        split.append(rest)
    return split
