"""Delay levels and their segments: ranges of a level's queue in which all messages wait equally long.

A level has one segment until the table of levels changes while messages wait in it; then its queue continues in a new
segment, so that a message with a delay of 1 s is not behind one with a delay of 2 h. Pure: callers read the queues.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import dropwhile

# An entry that is due later than its level's delay from now was stored before the clock was set back. If it is later by
# no more than this, it keeps its due time and waits longer; if by more, it waits its level's delay from the moment at
# which this is noticed. Either way it never waits less than its delay.
CLOCK_JUMP_TOLERANCE_MS = 60_000


@dataclass(slots=True)
class LevelSegment:
    """Holds queue offsets `start` to `end` of a level, all with one delay; `end` is None for the segment that grows.

    `next_offset`: the queue offset to deliver next. `stored_due_ms`: the due time in its entry, None when no message
    waits; when it really is due is computed anew each time, because the clock may have been set back since.
    `set_back_ms`: when it was noticed, for the messages that wait now, that the clock was set back.
    """

    delay_ms: int
    start: int = 0
    end: int | None = None
    next_offset: int = 0
    stored_due_ms: int | None = None
    set_back_ms: int | None = None

    def due_ms(self, stored_due_ms: int, now_ms: int) -> int:
        """Returns when an entry is due that was stored with `stored_due_ms`; see `CLOCK_JUMP_TOLERANCE_MS`."""
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
    """Holds one level's `segments`, the oldest first, at least one. The last one grows.

    `late_ms`: how late the first message of the last step was, -1 before any.
    """

    number: int
    segments: list[LevelSegment]
    late_ms: int = -1

    @property
    def queue_id(self) -> int:
        return self.number - 1

    @property
    def next_offset(self) -> int:
        return self.segments[0].next_offset

    def first_segment(self, now_ms: int) -> tuple[int, LevelSegment] | None:
        """Returns the earliest due time and its segment; None when nothing waits."""
        dues = [(due_ms, segment) for segment in self.segments if (due_ms := segment.next_due_ms(now_ms)) is not None]
        return min(dues, key=lambda due: due[0], default=None)

    def next_due_ms(self, now_ms: int) -> int | None:
        first = self.first_segment(now_ms)
        return None if first is None else first[0]

    def segment_of(self, queue_offset: int) -> LevelSegment | None:
        """Returns the segment in which `queue_offset` is not delivered yet, None when it was delivered."""
        for segment in self.segments:
            if segment.next_offset <= queue_offset and (segment.end is None or queue_offset < segment.end):
                return segment
        return None


def delay_of(number: int, delays_ms: tuple[int, ...]) -> int:
    """Returns the delay of level `number`; the longest of the table for a level that it does not have."""
    return delays_ms[number - 1] if number <= len(delays_ms) else max(delays_ms)


def drop_delivered(segments: list[LevelSegment]) -> list[LevelSegment]:
    """Drops the fully delivered segments before the first in which a message waits.

    A fully delivered one after it stays: the progress file says how far each one is delivered.
    """
    return list(dropwhile(lambda segment: segment.end is not None and segment.next_offset >= segment.end, segments))


def split_at(segments: list[LevelSegment], starts: list[int]) -> list[LevelSegment]:
    """Splits segments so that one begins at each of `starts`; the split ones count as undelivered."""
    split: list[LevelSegment] = []
    for segment in segments:
        rest = segment
        for start in sorted(starts):
            if rest.start < start and (rest.end is None or start < rest.end):
                split.append(LevelSegment(rest.delay_ms, rest.start, start))
                rest = LevelSegment(rest.delay_ms, start, rest.end)
        split.append(rest)
    return split
