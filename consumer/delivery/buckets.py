"""Durations counted in fixed buckets: two histograms are added bucket by bucket, whoever counted them.

Buckets are a millisecond wide below 16 ms, and eight to each doubling from there on, so the middle of a bucket is
within 7 % of each duration in it:

    0 … 15 ms → 0 … 15     16, 17 ms → 16     18, 19 ms → 17     …     1000 ms (960 … 1023) → 63
"""

from __future__ import annotations

from collections.abc import Iterable

# 49 days: longer than any broker keeps messages. What took longer counts as this long.
DURATION_MS_MAX = 2**32 - 1
_EXACT_BITS = 4


def bucket_of(duration_ms: int) -> int:
    """Returns the number of the bucket of a duration; a negative one, of two clocks that differ, is 0."""
    if duration_ms < 0:
        return 0
    duration_ms = min(duration_ms, DURATION_MS_MAX)
    shift = max(0, duration_ms.bit_length() - _EXACT_BITS)
    return 8 * shift + (duration_ms >> shift)


BUCKET_COUNT = bucket_of(DURATION_MS_MAX) + 1


def bounds_ms(bucket: int) -> tuple[int, int]:
    """Returns the first duration of a bucket, and the first one beyond it."""
    shift = max(0, bucket // 8 - 1)
    first = (bucket - 8 * shift) << shift
    return first, first + (1 << shift)


def percentiles_s(counts: Iterable[tuple[int, int]], shares: Iterable[float]) -> list[float]:
    """Returns for each share the seconds within which so much of what was counted stayed.

    `counts`: (bucket, how many), of which at least one is more than none.
    """
    ordered = sorted(counts)
    total = sum(count for _bucket, count in ordered)
    return [_middle_s(_bucket_at(ordered, share * total)) for share in shares]


def _bucket_at(ordered: list[tuple[int, int]], wanted: float) -> int:
    seen = 0
    for bucket, count in ordered:
        seen += count
        if seen >= wanted:
            return bucket
    return ordered[-1][0]


def _middle_s(bucket: int) -> float:
    first, beyond = bounds_ms(bucket)
    return (first + beyond - 1) / 2 / 1000
