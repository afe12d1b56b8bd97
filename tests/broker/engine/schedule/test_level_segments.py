"""Segments of a delay level: which delivers next, where a queue offset lies, which are done."""

from __future__ import annotations

import pytest

from broker.engine.schedule.level_segments import (
    CLOCK_JUMP_TOLERANCE_MS,
    Level,
    LevelSegment,
    delay_of,
    drop_delivered,
    split_at,
)

NOW_MS = 1_000_000


def level(*segments: LevelSegment) -> Level:
    return Level(1, list(segments))


def test_the_segment_that_falls_due_first_is_first_whichever_is_older() -> None:
    slow = LevelSegment(7_200_000, end=2, stored_due_ms=NOW_MS + 7_000_000)
    fast = LevelSegment(1_000, start=2, next_offset=2, stored_due_ms=NOW_MS + 500)
    assert level(slow, fast).first_segment(NOW_MS) == (NOW_MS + 500, fast)
    assert level(slow, LevelSegment(1_000, start=2)).next_due_ms(NOW_MS) == NOW_MS + 7_000_000
    assert level(LevelSegment(1_000)).next_due_ms(NOW_MS) is None


def test_what_is_further_away_than_its_level_explains_waits_its_delay_from_when_that_is_noticed() -> None:
    segment = LevelSegment(1_000)
    limit_ms = NOW_MS + 1_000 + CLOCK_JUMP_TOLERANCE_MS
    assert segment.due_ms(limit_ms, NOW_MS) == limit_ms
    assert segment.due_ms(limit_ms + 1, NOW_MS) == NOW_MS + 1_000
    assert segment.due_ms(limit_ms + 1, NOW_MS + 999) == NOW_MS + 1_000
    assert segment.due_ms(limit_ms + 1, NOW_MS - 70_000) == NOW_MS - 69_000


def test_a_segment_forgets_that_the_clock_was_set_back_with_what_was_stored_before() -> None:
    segment = LevelSegment(1_000)
    segment.due_ms(NOW_MS + 500_000, NOW_MS)
    assert segment.due_ms(NOW_MS + 300_000, NOW_MS + 299_500) == NOW_MS + 300_000
    assert segment.due_ms(NOW_MS + 302_000, NOW_MS + 299_500) == NOW_MS + 302_000


@pytest.mark.parametrize(
    ("queue_offset", "start"),
    [(0, None), (1, 0), (2, None), (3, 3), (99, 3)],
    ids=["delivered", "waits", "delivered in the second", "waits in the second", "still to come"],
)
def test_a_queue_offset_lies_in_the_segment_in_which_it_waits(queue_offset: int, start: int | None) -> None:
    segments = level(
        LevelSegment(1, end=2, next_offset=1),
        LevelSegment(2, start=2, end=3, next_offset=3),
        LevelSegment(3, start=3, next_offset=3),
    )
    segment = segments.segment_of(queue_offset)
    assert (segment.start if segment is not None else None) == start


def test_a_done_segment_stays_while_an_older_one_is_not() -> None:
    older, done, last = (
        LevelSegment(1, end=2),
        LevelSegment(2, start=2, end=3, next_offset=3),
        LevelSegment(3, start=3, next_offset=3),
    )
    assert drop_delivered([older, done, last]) == [older, done, last]
    older.next_offset = 2
    assert drop_delivered([older, done, last]) == [last]


def test_a_level_that_the_table_has_not_waits_as_long_as_the_longest() -> None:
    assert [delay_of(number, (5, 9, 7)) for number in (1, 3, 4)] == [5, 7, 9]


def test_segments_are_split_where_the_progress_says_that_one_began() -> None:
    segments = split_at([LevelSegment(5, end=4), LevelSegment(6, start=4)], [2, 4, 7])
    assert [(segment.delay_ms, segment.start, segment.end) for segment in segments] == [
        (5, 0, 2),
        (5, 2, 4),
        (6, 4, 7),
        (6, 7, None),
    ]
