"""Which numbers a rule looks at again: those that it passed over, for a while."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mqadmin.deadletter_rules.gaps import LOOKED_BACK_FOR, NumberGap, gaps_after, gaps_of, looked_at, with_numbers

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
NOW_MS = 1_772_625_600_000
OVER_MS = NOW_MS - int(LOOKED_BACK_FOR.total_seconds() * 1000)


@pytest.mark.parametrize(
    ("gaps", "settled", "seen", "after"),
    [
        pytest.param([], [], [], (), id="nothing new"),
        pytest.param([], [11, 12], [11, 12], (), id="none is missing"),
        pytest.param([], [13], [13], (NumberGap(11, 12, NOW_MS),), id="two are missing"),
        pytest.param([], [11, 13, 16], [], (NumberGap(12, 12, NOW_MS), NumberGap(14, 15, NOW_MS)), id="in two places"),
        pytest.param([NumberGap(3, 5, 1)], [4], [4], (), id="what is around one that came is over as it was"),
        pytest.param(
            [NumberGap(3, 5, NOW_MS - 1)],
            [4],
            [4],
            (NumberGap(3, 3, NOW_MS - 1), NumberGap(5, 5, NOW_MS - 1)),
            id="one of three came",
        ),
        pytest.param([NumberGap(3, 5, NOW_MS - 1)], [3, 4, 5], [3, 4, 5], (), id="all came"),
        pytest.param([NumberGap(3, 5, OVER_MS)], [], [], (), id="it is over"),
        pytest.param([NumberGap(3, 5, OVER_MS + 1)], [], [], (NumberGap(3, 5, OVER_MS + 1),), id="it is not over yet"),
        pytest.param([NumberGap(3, 5, OVER_MS)], [], [4], (NumberGap(3, 5, OVER_MS),), id="one came and is too young"),
        pytest.param(
            [NumberGap(3, 5, NOW_MS)],
            [12],
            [12],
            (NumberGap(3, 5, NOW_MS), NumberGap(11, 11, NOW_MS)),
            id="a new one comes after them",
        ),
    ],
)
def test_gaps_are_what_was_passed_over(gaps, settled, seen, after):
    assert gaps_after(gaps, 10, settled, seen, NOW) == after


def test_no_gap_is_over_before_all_were_looked_at():
    gap = NumberGap(3, 5, OVER_MS)
    assert gaps_after([gap], 10, [], [], NOW, is_whole=False) == (gap,)


def test_gaps_are_what_was_stored():
    assert gaps_of([[3, 5, 7]]) == (NumberGap(3, 5, 7),)


@pytest.mark.parametrize(
    ("ids", "room", "taken"),
    [([11, 12], 0, [11, 12]), ([12], 0, []), ([12, 14], 1, [12]), ([11, 13, 15], 2, [11, 13, 15]), ([], 0, [])],
)
def test_a_look_ends_where_there_were_too_many_gaps(ids, room, taken):
    assert looked_at(10, ids, room) == taken


def test_numbers_become_gaps_unless_they_are_in_one():
    gaps = with_numbers([NumberGap(3, 5, 1), NumberGap(9, 9, 2)], [4, 7, 12], NOW)
    assert gaps == (NumberGap(3, 5, 1), NumberGap(7, 7, NOW_MS), NumberGap(9, 9, 2), NumberGap(12, 12, NOW_MS))
