"""Which offsets of which queues are read, by whom. Pure; offsets are queue offsets, ends are one past the last.

A queue is named "broker-a:0": by its broker's name and its id there. `Offsets` holds one offset for each queue: the
next to read, or where it ends. As JSON it is what a stream's checkpoint keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

Offsets = Mapping[str, int]
# Each is a task of Spark, which keeps what it knows of it in the driver's memory.
SPANS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Span:
    """The messages of one queue from `start` up to, and without, `end`."""

    queue: str
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Plan:
    """`lost`: what was asked for and is not there any more."""

    spans: tuple[Span, ...]
    lost: tuple[Span, ...]


def queue_name(broker_name: str, queue_id: int) -> str:
    return f"{broker_name}:{queue_id}"


def plan(start: Offsets, end: Offsets, firsts: Offsets) -> Plan:
    """Returns what is to be read from `start` to `end`, of queues whose first readable messages are at `firsts`.

    A queue without a start is new: it is read from its first message. One whose end lies before its start was made
    anew, with its topic: it is read from its first message, and what lay before is gone. A queue that `firsts` does not
    name is gone with all that it had.

    >>> plan({"a:0": 5}, {"a:0": 20, "a:1": 3}, {"a:0": 8, "a:1": 0})
    Plan(spans=(Span(queue='a:0', start=8, end=20), Span(queue='a:1', start=0, end=3)), lost=(Span(queue='a:0', start=5, end=8),))
    """  # noqa: E501
    spans: list[Span] = []
    lost: list[Span] = []
    for queue in sorted(end):
        stop = end[queue]
        begin = start.get(queue)
        first = firsts.get(queue, stop)
        if begin is None:
            begin = first
        elif begin > stop:
            lost.append(Span(queue, stop, begin))
            begin = first
        if begin < first:
            lost.append(Span(queue, begin, min(first, stop)))
            begin = first
        if begin < stop:
            spans.append(Span(queue, begin, stop))
    return Plan(tuple(spans), tuple(one for one in lost if len(one)))


def split(spans: Iterable[Span], records_max: int | None) -> list[Span]:
    """Returns the spans cut into even parts of at most `records_max` offsets. Raises ValueError beyond SPANS_MAX.

    >>> split([Span("a:0", 0, 10)], 4)
    [Span(queue='a:0', start=0, end=3), Span(queue='a:0', start=3, end=6), Span(queue='a:0', start=6, end=10)]
    """
    whole = list(spans)
    if records_max is None:
        return whole
    count = sum(-(-len(one) // records_max) for one in whole)
    if count > SPANS_MAX:
        raise ValueError(
            f"maxRecordsPerPartition is {records_max}, which makes {count} partitions; {SPANS_MAX} are allowed"
        )
    return [part for one in whole for part in _even_parts(one, -(-len(one) // records_max))]


def limited(start: Offsets, end: Offsets, firsts: Offsets, rows_max: int) -> dict[str, int]:
    """Returns how far a micro-batch of at most `rows_max` offsets goes: each queue in proportion to what waits in it.

    Where less than an offset falls to each queue, those that have most get one. Queues that are new or made anew count
    from `firsts`.
    """
    waiting = {queue: max(0, stop - _begin(queue, start, stop, firsts)) for queue, stop in end.items()}
    total = sum(waiting.values())
    if total <= rows_max:
        return dict(end)
    shares = {queue: count * rows_max // total for queue, count in waiting.items()}
    left = rows_max - sum(shares.values())
    by_need = sorted(waiting, key=lambda queue: (shares[queue] - waiting[queue], queue))
    for queue in by_need[:left]:
        shares[queue] += waiting[queue] > shares[queue]
    reached = {queue: _begin(queue, start, stop, firsts) + shares[queue] for queue, stop in end.items()}
    # A new queue that gets nothing yet stays new; what has nothing to read stays where it is.
    return {queue: at for queue, at in reached.items() if queue in start or shares[queue]}


def reached(start: Offsets, end: Offsets) -> dict[str, int]:
    """Returns `end`, and for queues that no broker names now, where they were read up to."""
    return {**start, **end}


def _begin(queue: str, start: Offsets, stop: int, firsts: Offsets) -> int:
    first = firsts.get(queue, stop)
    begin = start.get(queue, first)
    return first if begin > stop else max(begin, min(first, stop))


def _even_parts(span: Span, count: int) -> Iterator[Span]:
    cuts = [span.start + len(span) * number // count for number in range(count + 1)]
    for begin, stop in pairwise(cuts):
        yield Span(span.queue, begin, stop)
