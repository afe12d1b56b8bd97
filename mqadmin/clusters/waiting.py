"""Since when does the next message of a group wait, where no broker says so? From what the queue's max was seen to be.

Of each queue some (moment, max offset) pairs are kept. The message at a committed offset C certainly existed when the
max was first seen beyond C, so it has been waiting at least since then:

    seen     09:00:00 max 100    09:00:15 max 140    09:00:30 max 180
    committed 120  →  waiting at least since 09:00:15
    committed 180  →  nothing waits

Kept are at most PAIRS_MAX; when they are full, every second of the older half goes, so the recent past stays sharp and
the far past coarse. Dropping a pair can only make the answer later, so "at least" stays true.

    | 4 bytes: seconds since the epoch | 8 bytes: max offset |   little-endian, oldest first
"""

from __future__ import annotations

import struct

PAIRS_MAX = 48
_PAIR = struct.Struct("<Iq")


def noted(packed: bytes | memoryview, at_s: int, max_offset: int) -> bytes:
    """Returns the history with this observation; unchanged when the max is what it was."""
    if packed and _PAIR.unpack_from(packed, len(packed) - _PAIR.size)[1] == max_offset:
        return bytes(packed)
    pairs = list(_PAIR.iter_unpack(packed))
    if pairs and pairs[-1][1] > max_offset:
        pairs = []  # the topic was made anew: its past says nothing of these offsets
    pairs.append((at_s, max_offset))
    if len(pairs) > PAIRS_MAX:
        half = PAIRS_MAX // 2
        pairs = pairs[:half:2] + pairs[half:]
    return b"".join(_PAIR.pack(*pair) for pair in pairs)


def waiting_since_s(packed: bytes | memoryview, committed_offset: int) -> int | None:
    """Returns the time of the first observation that found a message at `committed_offset`; None when none did."""
    for at_s, max_offset in _PAIR.iter_unpack(packed):
        if max_offset > committed_offset:
            seconds: int = at_s
            return seconds
    return None


def seen_without_s(packed: bytes | memoryview, committed_offset: int) -> int | None:
    """Returns the time of the last observation before that, which found none: the message came between the two."""
    last = None
    for at_s, max_offset in _PAIR.iter_unpack(packed):
        if max_offset > committed_offset:
            break
        last = at_s
    return last


def max_at(packed: bytes | memoryview, at_s: int) -> int | None:
    """Returns the max as it was last seen by then; None when it had not been seen."""
    found = None
    for seen_s, max_offset in _PAIR.iter_unpack(packed):
        if seen_s > at_s:
            break
        found = max_offset
    return found
