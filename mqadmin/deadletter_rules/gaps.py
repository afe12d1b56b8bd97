"""The numbers that a rule has passed over without a dead letter to see there, and looks at again for a while. Pure.

A database gives dead letters their numbers before it shows them: on PostgreSQL one with a lower number can be shown
after one with a higher number was looked at. A number that nobody shows within LOOKED_BACK_FOR was never used.

One that was looked at and turns out to be another's, since its reason came late, is a gap again, too (`receivers.py`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

# Indexing writes what it read at once in one transaction, which takes seconds; a worker may stand still in it.
LOOKED_BACK_FOR = timedelta(minutes=30)
# Of one rule. Where there are more, its look goes on when the oldest are over.
GAPS_MAX = 500


class NumberGap(NamedTuple):
    """The numbers from `first` to `last`; a dead letter beyond them was looked at, at `noted_ms` for the first time."""

    first: int
    last: int
    noted_ms: int


def gaps_of(stored: Iterable[Sequence[int]]) -> tuple[NumberGap, ...]:
    """Returns what a rule has stored of them, as plain JSON."""
    return tuple(NumberGap(*one) for one in stored)


def looked_at(reached: int, ids: Sequence[int], room: int) -> Sequence[int]:
    """Returns the first of the ascending `ids`, all beyond `reached`: those that leave `room` gaps at most."""
    for place, (before, after) in enumerate(pairwise((reached, *ids))):
        room -= after > before + 1
        if room < 0:
            return ids[:place]
    return ids


def gaps_after(
    gaps: Sequence[NumberGap],
    reached: int,
    settled: Collection[int],
    seen: Collection[int],
    now: datetime,
    *,
    is_whole: bool = True,
) -> tuple[NumberGap, ...]:
    """Returns the gaps, in order, when `settled` were settled; `reached` is how far the rule was before.

    One that is over goes, unless it has one of `seen`, which is there and still to be settled; none goes where the look
    was not at all of them (`is_whole`).
    """
    now_ms = round(now.timestamp() * 1000)
    over_ms = now_ms - LOOKED_BACK_FOR // timedelta(milliseconds=1)
    ids, there = sorted(settled), sorted(seen)
    left = [part for gap in gaps for part in _without(gap, ids)]
    kept = [gap for gap in left if not is_whole or gap.noted_ms > over_ms or _within(gap, there)]
    beyond = ids[bisect_right(ids, reached) :]
    return (*kept, *_between((reached, *beyond), now_ms))


def with_numbers(gaps: Sequence[NumberGap], ids: Iterable[int], now: datetime) -> tuple[NumberGap, ...]:
    """Returns the gaps with one for each of `ids` that is in none of them."""
    now_ms = round(now.timestamp() * 1000)
    further = [NumberGap(one, one, now_ms) for one in ids if not any(gap.first <= one <= gap.last for gap in gaps)]
    return tuple(sorted((*gaps, *further)))


def _without(gap: NumberGap, ids: Sequence[int]) -> list[NumberGap]:
    return _between((gap.first - 1, *_within(gap, ids), gap.last + 1), gap.noted_ms)


def _within(gap: NumberGap, ids: Sequence[int]) -> Sequence[int]:
    return ids[bisect_left(ids, gap.first) : bisect_right(ids, gap.last)]


def _between(ids: Sequence[int], noted_ms: int) -> list[NumberGap]:
    return [NumberGap(one + 1, after - 1, noted_ms) for one, after in pairwise(ids) if after > one + 1]
