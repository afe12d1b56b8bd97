"""How many messages of a group died lately, and how many came to be retried. Pure: totals and times in, counts out.

What topics of dead letters and of retries hold only grows, so counts are differences of totals. Of each group a few
samples are kept (`LagHistory.failing`): the newest that is as old as the window, and those within it, one for each half
minute in which something failed.

    10:00:00 dead 7, retried 40      10:03:30 dead 7, retried 52      10:08:00 dead 9, retried 61
    at 10:09:00, of the last ten minutes: 2 died, 21 were retried, 9 of them in the later half

What came at no known time is no news, but what is counted from: what a broker held when it was first asked, or asked
again after it was gone; what a topic held that was made anew, or is seen with other queues than before. A topic of dead
letters that brokers did not have when they were asked before is new, and so is all that it has. One of retries may be
there for long before it is asked for.

    | 4 bytes: seconds | 8: dead | 8: retried | 8: consumed | 2: queues of dead letters | 2: queues of retries |
    | 4: brokers |
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

# "Now" for who asks whether messages die: two looks at a page, and longer than one burst takes.
WINDOW_S = 600
BUCKET_S = 30
# What counts is looked at again so often, for it ends by time alone.
AGAIN_S = 60
_SAMPLE = struct.Struct("<IQQQHHI")
QUEUES_MAX = 2**16 - 1
TOTAL_MAX = 2**64 - 1


class Totals(NamedTuple):
    """What was ever written to the two topics, over how many queues; and what the group has consumed.

    `brokers`: a digest of those whose word that is.
    """

    dead: int
    retried: int
    consumed: int
    dead_queue_count: int
    retry_queue_count: int
    brokers: int = 0


class FailingSample(NamedTuple):
    at_s: int
    totals: Totals


@dataclass(frozen=True, slots=True)
class Failing:
    """Of the last WINDOW_S. `retried_late`: of the retried, those of its later half. `consumed`: while they were."""

    died: int = 0
    retried: int = 0
    retried_late: int = 0
    consumed: int = 0

    @property
    def is_any(self) -> bool:
        return self.died > 0 or self.retried > 0


NOTHING_FAILS = Failing()


def appended(packed: bytes | memoryview, sample: FailingSample) -> bytes:
    """Returns the history with `sample` as its newest, where that says more; else the same bytes."""
    samples = _comparable(_unpack(packed), sample.totals)
    if not samples:
        return _pack([sample])
    newest = samples[-1]
    is_news = newest.totals[:2] != sample.totals[:2]
    is_room = newest.at_s // BUCKET_S < sample.at_s // BUCKET_S
    if not is_news and not (is_room and _counted(samples, sample.at_s).is_any):
        return _pack(samples)
    if not is_room and len(samples) > 1:
        samples.pop()
    return _pack(_within_window([*samples, sample], sample.at_s))


def counted(packed: bytes | memoryview, now_s: int) -> Failing:
    """Returns what failed within the window that ends at `now_s`."""
    return _counted(_unpack(packed), now_s)


def _counted(kept: list[FailingSample], now_s: int) -> Failing:
    samples = _within_window(kept, now_s)
    if not samples:
        return NOTHING_FAILS
    first, newest = samples[0].totals, samples[-1].totals
    middle = _held_at(samples, now_s - WINDOW_S // 2)
    # While nothing fails no sample is taken: what was consumed is counted from the first one that is young enough.
    young = next((one for one in samples if one.at_s > now_s - WINDOW_S - BUCKET_S), samples[-1])
    return Failing(
        died=newest.dead - first.dead,
        retried=newest.retried - first.retried,
        retried_late=newest.retried - middle.retried,
        consumed=max(0, newest.consumed - young.totals.consumed),
    )


def _comparable(samples: Sequence[FailingSample], now: Totals) -> list[FailingSample]:
    """Returns the samples as if what is seen for the first time had been there: differences are what failed, as before.

    >>> [one.totals.dead for one in _comparable([FailingSample(0, Totals(3, 0, 0, 1, 1))], Totals(9, 0, 0, 2, 1))]
    [9]
    """
    if not samples:
        return []
    before = samples[-1].totals
    is_same = before.brokers == now.brokers
    is_dead_known = is_same and now.dead >= before.dead and before.dead_queue_count in (0, now.dead_queue_count)
    is_retried_known = is_same and now.retried >= before.retried and before.retry_queue_count == now.retry_queue_count
    dead = 0 if is_dead_known else now.dead - before.dead
    retried = 0 if is_retried_known else now.retried - before.retried
    consumed = 0 if is_same else now.consumed - before.consumed
    return [
        FailingSample(
            one.at_s,
            now._replace(
                dead=max(0, one.totals.dead + dead),
                retried=max(0, one.totals.retried + retried),
                consumed=max(0, one.totals.consumed + consumed),
            ),
        )
        for one in samples
    ]


def _held_at(samples: Sequence[FailingSample], at_s: int) -> Totals:
    return next((one.totals for one in reversed(samples) if one.at_s <= at_s), samples[0].totals)


def _within_window(samples: list[FailingSample], now_s: int) -> list[FailingSample]:
    """Returns the samples within the window, and the last one before it."""
    before = sum(one.at_s <= now_s - WINDOW_S for one in samples)
    return samples[max(0, before - 1) :]


def _unpack(packed: bytes | memoryview) -> list[FailingSample]:
    return [FailingSample(at_s, Totals(*totals)) for at_s, *totals in _SAMPLE.iter_unpack(packed)]


def _pack(samples: Sequence[FailingSample]) -> bytes:
    return b"".join(_SAMPLE.pack(at_s, *totals) for at_s, totals in samples)
