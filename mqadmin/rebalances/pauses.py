"""How long consumption stood around a rebalance, as committed offsets show it, with the doubt of sampling. Pure.

A queue stands from when its offset moved last, or from when the next message to consume came if that was later, until
its offset moves again. Both happened between two samples, so a pause is told by its bounds: it was no shorter than
`at_least_s` and no longer than `at_most_s`. Of a rebalance counts the queue that stood longest of those that moved.

Worked example: queue 0 has 5 committed at 0 s and 7 at 30 s, 7 still at 60 s, 90 s and 120 s, and 9 at 150 s; messages
wait all the time. It moved last after -15 s (a cycle is 45 s after the one before at most) and no later than 30 s, and
again after 105 s and no later than 150 s: it stood for 75 s at least, and for 165 s at most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import NamedTuple

from mqadmin.lag.hot_window import LATE, Gap, TopicSample
from mqadmin.lag.lateness import LATE_AFTER_S
from mqadmin.lag.packing import QueueSample
from remoting.wire.bodies.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class Pause:
    """`at_most_s` None: has no bound, as nothing was sampled before or after. `queue`: which stood longest.

    `is_over` False: the offset had not moved again when it was sampled last.
    """

    at_least_s: int
    at_most_s: int | None
    is_over: bool
    queue: MessageQueue | None = None


class Stretch(NamedTuple):
    """A queue stood with messages waiting, from between the first two moments until between the last two.

    `began_after_s` None: since before the first sample; `ended_by_s` None: it had not moved when it was sampled last.
    """

    began_after_s: float | None
    began_by_s: float
    ended_after_s: float
    ended_by_s: float | None

    @property
    def at_least_s(self) -> int:
        return max(0, int(self.ended_after_s - self.began_by_s))

    @property
    def at_most_s(self) -> int | None:
        if self.began_after_s is None or self.ended_by_s is None:
            return None
        return int(self.ended_by_s - self.began_after_s)


class _Seen(NamedTuple):
    at_s: int
    queue: QueueSample


def pause(
    found: Iterable[TopicSample | Gap], queues: Iterable[MessageQueue], *, since_s: float, at_s: float, until_s: float
) -> Pause | None:
    """Returns the longest stretch of one of `queues` that touches `since_s` … `at_s`; None: not sampled.

    `found`: the group's samples up to `until_s`, in the order of time, with the gaps. A queue without messages that
    wait has no pause.
    """
    runs = _runs(found)
    sampled = [queue for queue in queues if any(run[0].at_s <= at_s <= last_s for run, last_s in runs[queue])]
    if not sampled:
        return None
    touching = [
        (queue, stretch)
        for queue in sampled
        for run, last_s in runs[queue]
        for stretch in stretches(run, min(last_s, until_s))
        if (stretch.began_after_s or 0) <= at_s and (stretch.ended_by_s is None or stretch.ended_by_s >= since_s)
    ]
    if not touching:
        return Pause(0, 0, is_over=True)
    queue, longest = max(touching, key=lambda one: (one[1].at_least_s, one[1].at_most_s or 0))
    return Pause(longest.at_least_s, longest.at_most_s, longest.ended_by_s is not None, queue)


def stretches(run: Sequence[_Seen], last_s: float) -> Iterator[Stretch]:
    """Yields when a queue stood with messages waiting; of its samples in `run` none is missing up to `last_s`.

    Samples are written when something of the topic changed, so several in a row may say the same of a queue.
    """
    moved = [
        0,
        *(number for number in range(1, len(run)) if _offset(run, number) != _offset(run, number - 1)),
        len(run),
    ]
    for first, beyond in pairwise(moved):
        waiting = next((one for one in run[first:beyond] if one.queue.lag), None)
        if waiting is None:
            continue
        after_s, by_s = _began(run[first], waiting, is_first=first == 0)
        if beyond < len(run):
            # Of the cycles that wrote nothing the last one saw it standing.
            ended_after_s: float = max(run[beyond - 1].at_s, run[beyond].at_s - LATE_AFTER_S)
            yield Stretch(after_s, by_s, ended_after_s, run[beyond].at_s)
        else:
            yield Stretch(after_s, by_s, max(run[-1].at_s, last_s - LATE_AFTER_S), None)


def _began(moved: _Seen, waiting: _Seen, *, is_first: bool) -> tuple[float | None, float]:
    """Returns after when, and by when, the queue stood with messages waiting."""
    was_empty = waiting.at_s > moved.at_s
    after_s: float | None = None if is_first and not was_empty else waiting.at_s - LATE_AFTER_S
    by_s: float = waiting.at_s
    if waiting.queue.waiting_since_ms:
        came_s = waiting.queue.waiting_since_ms / 1000
        if waiting.queue.doubt_ms is not None:
            earliest_s = came_s - waiting.queue.doubt_ms / 1000
            after_s = earliest_s if after_s is None else max(after_s, earliest_s)
        if was_empty:
            by_s = min(by_s, came_s)
    return after_s, by_s


def _runs(found: Iterable[TopicSample | Gap]) -> defaultdict[MessageQueue, list[tuple[list[_Seen], float]]]:
    """Returns each queue's samples between gaps, with the moment up to which none is missing.

    A partial gap is one for the queues of the brokers that do not answer: they stand in the samples as they were
    before. Those of the others are sampled on.
    """
    runs: defaultdict[MessageQueue, list[tuple[list[_Seen], float]]] = defaultdict(list)
    open_runs: dict[MessageQueue, list[_Seen]] = {}
    blind = _Blind()
    for one in found:
        if isinstance(one, Gap):
            blind.add(one)
            for queue in [queue for queue in open_runs if not one.brokers or queue.broker_name in one.brokers]:
                runs[queue].append((open_runs.pop(queue), one.at_s))
            continue
        for queue in _unread(open_runs, one):
            runs[queue].append((open_runs.pop(queue), one.at_s))
        for sampled in one.queues:
            if sampled.committed_offset is not None and one.at_s >= blind.until_s(sampled.broker_name):
                key = MessageQueue(one.topic, sampled.broker_name, sampled.queue_id)
                open_runs.setdefault(key, []).append(_Seen(one.at_s, sampled))
    for queue, run in open_runs.items():
        runs[queue].append((run, inf))
    return runs


class _Blind:
    """Until when what samples say of a broker's queues is not known: a gap that names no brokers is one of all."""

    def __init__(self) -> None:
        self._all_until_s = 0
        self._until_s: dict[str, int] = {}

    def add(self, gap: Gap) -> None:
        # What is late ends with a whole cycle; of the others the last cycle is in doubt itself.
        until_s = gap.until_s if gap.state == LATE else gap.until_s + 1
        if not gap.brokers:
            self._all_until_s = max(self._all_until_s, until_s)
        for broker in gap.brokers:
            self._until_s[broker] = max(self._until_s.get(broker, 0), until_s)

    def until_s(self, broker: str) -> int:
        return max(self._all_until_s, self._until_s.get(broker, 0))


def _unread(open_runs: Iterable[MessageQueue], sample: TopicSample) -> list[MessageQueue]:
    """Returns the queues of a topic that the group reads no longer: they have no queue in its last sample."""
    return [] if sample.queues else [queue for queue in open_runs if queue.topic == sample.topic]


def _offset(run: Sequence[_Seen], number: int) -> int | None:
    return run[number].queue.committed_offset
