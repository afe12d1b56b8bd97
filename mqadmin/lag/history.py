"""The last hour of one group's lag, packed: one sample per half minute in which something changed.

A sample says "from this moment on the lag was N" (or was not known), so an hour of standing still costs one sample
and a drawing is a step line. The latest value of a half minute wins. Times are whole seconds since the epoch.

    | 4 bytes: seconds | 8 bytes: lag, -1 not known |   little-endian, oldest first
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

WINDOW_S = 3600
BUCKET_S = 30
_SAMPLE = struct.Struct("<Iq")
_NOT_KNOWN = -1
# Half minutes in the window, and the sample that held when it began.
SAMPLES_MAX = WINDOW_S // BUCKET_S + 1


class LagSample(NamedTuple):
    at_s: int
    lag: int | None


def unpack(packed: bytes | memoryview) -> list[LagSample]:
    return list(_samples(packed))


def appended(packed: bytes | memoryview, sample: LagSample) -> bytes:
    """Returns the history with `sample` as its newest, and nothing older than the window needs.

    Unchanged (the same bytes) when the newest says the same already.
    """
    if not is_news(packed, sample):
        return bytes(packed)
    kept, newest = bytes(packed), _newest(packed)
    if newest is not None and newest.at_s // BUCKET_S == sample.at_s // BUCKET_S:
        kept = kept[: -_SAMPLE.size]
    kept += _SAMPLE.pack(sample.at_s, _NOT_KNOWN if sample.lag is None else sample.lag)
    return _within_window(kept, sample.at_s)


def is_news(packed: bytes | memoryview, sample: LagSample) -> bool:
    """Tells whether the newest sample has another lag."""
    newest = _newest(packed)
    return newest is None or newest.lag != sample.lag


def has_room(packed: bytes | memoryview, at_s: int) -> bool:
    """Tells whether the half minute of `at_s` has no sample yet: its first is written at once, a later one waits."""
    newest = _newest(packed)
    return newest is None or newest.at_s // BUCKET_S < at_s // BUCKET_S or newest.lag is None


def next_bucket_s(at_s: int) -> int:
    """Returns when the half minute after that of `at_s` begins."""
    return (at_s // BUCKET_S + 1) * BUCKET_S


def lag_at(packed: bytes | memoryview, at_s: int) -> int | None:
    """Returns the lag that held at `at_s`; None when it was not known, or before the first sample."""
    place = _count_until(packed, at_s)
    return _sample(packed, place - 1).lag if place else None


def first_after(packed: bytes | memoryview, at_s: int) -> LagSample | None:
    """Returns the oldest sample that is younger than `at_s`."""
    place = _count_until(packed, at_s)
    return _sample(packed, place) if place < len(packed) // _SAMPLE.size else None


def is_known_after(packed: bytes | memoryview, at_s: int) -> bool:
    """Tells whether no sample that is younger than `at_s` says "not known"."""
    places = range(_count_until(packed, at_s), len(packed) // _SAMPLE.size)
    return all(_sample(packed, place).lag is not None for place in places)


def window(packed: bytes | memoryview, now_s: int) -> list[LagSample]:
    """Returns the steps of the last hour; the first is moved to the window's edge when it began before it."""
    edge_s = now_s - WINDOW_S
    return [sample._replace(at_s=max(sample.at_s, edge_s)) for sample in _samples(_within_window(packed, now_s))]


def _sample(packed: bytes | memoryview, place: int) -> LagSample:
    at_s, lag = _SAMPLE.unpack_from(packed, place * _SAMPLE.size)
    return LagSample(at_s, None if lag == _NOT_KNOWN else lag)


def _newest(packed: bytes | memoryview) -> LagSample | None:
    return _sample(packed, len(packed) // _SAMPLE.size - 1) if packed else None


def _count_until(packed: bytes | memoryview, at_s: int) -> int:
    """Returns how many samples are of `at_s` or older: most questions are about a few of a hundred."""
    places = range(len(packed) // _SAMPLE.size)
    return bisect_right(places, at_s, key=lambda place: _sample(packed, place).at_s)


def _samples(packed: bytes | memoryview) -> Iterator[LagSample]:
    for at_s, lag in _SAMPLE.iter_unpack(packed):
        yield LagSample(at_s, None if lag == _NOT_KNOWN else lag)


def _within_window(packed: bytes | memoryview, now_s: int) -> bytes:
    """Returns the samples within the window, and the last one before it."""
    held = _count_until(packed, now_s - WINDOW_S) - 1
    first = max(0, held, len(packed) // _SAMPLE.size - SAMPLES_MAX)
    return bytes(packed[first * _SAMPLE.size :])
