"""Messages a second from two totals: counted over at least a few seconds, so that a burst is not a rate."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

# Commits come every 5 s: over less, a steady consumer would look like bursts and pauses.
INTERVAL_S_MIN = 10.0
# Over more than this the mean says nothing of now.
INTERVAL_S_MAX = 120.0
# A row that is due and cannot be judged yet is judged again after this.
_AGAIN_AFTER_S = 1.0


class Rate(NamedTuple):
    """The total that is counted from, when it was read, and the rate known so far (None: not yet)."""

    base_at: datetime | None
    base_total: int | None
    per_s: float | None


def rate(known: Rate, total: int, now: datetime) -> Rate:
    """Returns the rate: `known` while too little time went by; a new, unknown one after a gap or a smaller total."""
    if known.base_at is None or known.base_total is None:
        return Rate(now, total, None)
    interval_s = (now - known.base_at).total_seconds()
    if total < known.base_total or interval_s > INTERVAL_S_MAX:
        return Rate(now, total, None)
    if interval_s < INTERVAL_S_MIN:
        return known
    return Rate(now, total, round((total - known.base_total) / interval_s, 3))


def due_at(base_at: datetime | None, rates: Iterable[float | None], now: datetime) -> datetime | None:
    """Returns when `rate` would say something else of totals that stand still; None when it never would."""
    if base_at is None or all(per_s == 0 for per_s in rates):
        return None
    return max(base_at + timedelta(seconds=INTERVAL_S_MIN), now + timedelta(seconds=_AGAIN_AFTER_S))
