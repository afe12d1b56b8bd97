"""One group's queues of one topic at one cycle, packed for the hot window: both directions.

Values stand column by column, so that zlib finds them alike; a group of 8 queues takes 100 to 160 bytes. Little-endian:

    | 1 byte: format, 1 | the rest, compressed by zlib:
      | 1: verdict's rank | 4: members, -1 not known | 4: age in seconds, -1 not known | 1: brokers | 2: queues, N |
      | per broker | 2: length | UTF-8 name |
      | N × 1: which broker | N × 4: queue id | N × 8: committed offset, -1 none | N × 8: end, -1 not known |
      | N × 8: ms since the epoch, see below | N × 4: doubt in ms |

The moment is since when the next message to consume has been waiting: 0 nothing waits, -1 not known. It is a moment,
not a duration, so a queue that stands has the same values at each cycle. It may be earlier by the doubt: 0 is exact
(the broker's store time), -1 has no bound. `age` is how old the oldest row was when the sample was taken.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

FORMAT = 1
# What the fields hold; of one topic.
BROKERS_MAX = 255
QUEUES_MAX = 65_535
AGE_S_MAX = 2**31 - 1
_NOT_KNOWN = -1
_NOTHING_WAITS = 0
_HEAD = struct.Struct("<BiiBH")
_AGE_AT, _AGE_BYTES = 5, 4
_LENGTH = struct.Struct("<H")
_COLUMNS = "<{0}B{0}I{0}q{0}q{0}q{0}i"
# The fastest: half of what the best takes off costs a tenth of its time.
_LEVEL = 1


class QueueSample(NamedTuple):
    """One queue as it was sampled; None: not known.

    `waiting_since_ms`: since when the next message has been waiting, 0 when none does. It may have been waiting
    `doubt_ms` longer: 0 is exact, None unbounded.
    """

    broker_name: str
    queue_id: int
    committed_offset: int | None
    max_offset: int | None
    waiting_since_ms: int | None = _NOTHING_WAITS
    doubt_ms: int | None = 0

    @property
    def lag(self) -> int | None:
        """Returns how many messages wait; None where an offset is not known. Never below 0."""
        if self.max_offset == 0:
            return 0
        if self.committed_offset is None or self.max_offset is None:
            return None
        return max(0, self.max_offset - self.committed_offset)

    def waiting_s(self, at_s: float) -> float | None:
        """Returns for how long the next message had been waiting at `at_s`, at least; 0 when none waited."""
        if self.waiting_since_ms is None:
            return None
        return max(0.0, at_s - self.waiting_since_ms / 1000) if self.waiting_since_ms else 0.0


class Sampled(NamedTuple):
    """What one packed row holds. `age_s`: how old the oldest of it was; None: not known."""

    verdict_rank: int
    member_count: int | None
    age_s: int | None
    queues: tuple[QueueSample, ...]


def pack(sampled: Sampled) -> bytes:
    """Packs what one row holds. Raises ValueError for more brokers or queues than the format has room for."""
    return compressed(laid_out(sampled))


def compressed(layout: bytes) -> bytes:
    """Returns the row of what is laid out."""
    return bytes((FORMAT,)) + zlib.compress(layout, _LEVEL)


def without_age(layout: bytes) -> bytes:
    """Returns of what is laid out all but its age, which is another one at each cycle of a queue that stands."""
    return layout[:_AGE_AT] + layout[_AGE_AT + _AGE_BYTES :]


def laid_out(sampled: Sampled) -> bytes:
    """Lays out what one row holds, as yet uncompressed. Raises ValueError as `pack` does."""
    queues = sampled.queues
    names = list(dict.fromkeys(queue.broker_name for queue in queues))
    if len(names) > BROKERS_MAX or len(queues) > QUEUES_MAX:
        raise ValueError(f"{len(names)} brokers and {len(queues)} queues; room is for {BROKERS_MAX} and {QUEUES_MAX}")
    place = {name: number for number, name in enumerate(names)}
    head = _HEAD.pack(
        sampled.verdict_rank, _or_not_known(sampled.member_count), _age(sampled.age_s), len(names), len(queues)
    )
    encoded = [name.encode() for name in names]
    columns = struct.pack(
        _COLUMNS.format(len(queues)),
        *(place[queue.broker_name] for queue in queues),
        *(queue.queue_id for queue in queues),
        *(_or_not_known(queue.committed_offset) for queue in queues),
        *(_or_not_known(queue.max_offset) for queue in queues),
        *(_or_not_known(queue.waiting_since_ms) for queue in queues),
        *(_or_not_known(queue.doubt_ms) for queue in queues),
    )
    return b"".join((head, *(_LENGTH.pack(len(name)) + name for name in encoded), columns))


def unpack(packed: bytes | memoryview) -> Sampled:
    """Unpacks one row. Raises ValueError for another format, and for bytes that are none of ours."""
    if not packed or packed[0] != FORMAT:
        raise ValueError(f"a sample of format {packed[0] if packed else 'none'}: this version reads {FORMAT}")
    try:
        raw = zlib.decompress(packed[1:])
        rank, members, age_s, broker_count, queue_count = _HEAD.unpack_from(raw)
        names, at = _names(raw, broker_count)
        values = struct.unpack_from(_COLUMNS.format(queue_count), raw, at)
    except (zlib.error, struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"a sample that is damaged: {error}") from error
    columns = [values[first : first + queue_count] for first in range(0, len(values), queue_count or 1)]
    queues = tuple(
        QueueSample(names[broker], queue_id, *(_known(value) for value in others))
        for broker, queue_id, *others in zip(*columns, strict=True)
    )
    return Sampled(rank, _known(members), _known(age_s), queues)


def _names(raw: bytes, count: int) -> tuple[Sequence[str], int]:
    """Returns the brokers' names, and where the columns begin."""
    names, at = [], _HEAD.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(raw, at)
        at += _LENGTH.size
        names.append(raw[at : at + length].decode())
        at += length
    return names, at


def _age(age_s: int | None) -> int:
    return _NOT_KNOWN if age_s is None else max(0, min(age_s, AGE_S_MAX))


def _or_not_known(value: int | None) -> int:
    return _NOT_KNOWN if value is None else value


def _known(value: int) -> int | None:
    return None if value == _NOT_KNOWN else value
