"""Curves of a group over a range of the hot window: lag, rates, waiting time, per queue. Pure, but for `curves`.

The range is cut into equal steps, POINTS_MAX at most. A step says what held at its end: lag is the sum over the queues
of which it is known, rates are what totals grew by since the step before. Where a gap lies in a step nothing is known,
and no rate goes across a gap or over another set of queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from mqadmin.clusters.models import Group
from mqadmin.lag import hot_window
from mqadmin.lag.hot_window import Gap, TopicSample
from mqadmin.lag.models import SpanState
from mqadmin.lag.packing import QueueSample
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.names import is_dlq_topic

# More than a screen has room for.
POINTS_MAX = 360
# A step is no shorter than a cycle.
STEP_S_MIN = 30
# Of a group with more queues, those with the most lag at the end.
QUEUES_MAX = 64


class CurvePoint(NamedTuple):
    """What held at a moment; None: not known. `dead`: how many dead letters there were in all."""

    at: datetime
    lag: int | None
    in_per_s: float | None = None
    out_per_s: float | None = None
    waiting_s: float | None = None
    dead: int | None = None


@dataclass(frozen=True, slots=True)
class QueueCurve:
    """`lags`: of each step."""

    queue: MessageQueue
    lags: Sequence[int | None]

    @property
    def lag(self) -> int | None:
        return self.lags[-1] if self.lags else None


@dataclass(frozen=True, slots=True)
class Curves:
    """`skew`: how many times an even share the fullest queue holds at the end; None where nothing waits."""

    since: datetime
    until: datetime
    points: Sequence[CurvePoint] = ()
    queues: Sequence[QueueCurve] = ()
    gaps: Sequence[Gap] = ()
    skew: float | None = None


@dataclass(slots=True)
class _Held:
    """What was sampled last of each queue, when of each topic, and what the rates are counted from."""

    queues: dict[MessageQueue, QueueSample] = field(default_factory=dict)
    taken_s: dict[str, int] = field(default_factory=dict)
    dead: dict[MessageQueue, int] = field(default_factory=dict)
    base: tuple[int, frozenset[MessageQueue], int, int] | None = None

    def take(self, sample: TopicSample) -> None:
        """Puts the sample in the place of the topic's last one."""
        if is_dlq_topic(sample.topic):
            self.dead = {}
            for queue in sample.queues:
                if queue.max_offset is not None:
                    self.dead[MessageQueue(sample.topic, queue.broker_name, queue.queue_id)] = queue.max_offset
            return
        self.taken_s[sample.topic] = sample.at_s
        for known in [known for known in self.queues if known.topic == sample.topic]:
            del self.queues[known]
        for queue in sample.queues:
            self.queues[MessageQueue(sample.topic, queue.broker_name, queue.queue_id)] = queue

    def waits(self, at_s: int) -> Iterator[float]:
        """Yields how long each queue's next message had been waiting when a cycle last saw it so, before `at_s`."""
        for queue, one in self.queues.items():
            wait = one.waiting_s(max(self.taken_s[queue.topic], at_s - STEP_S_MIN))
            if wait is not None:
                yield wait

    def forget(self) -> None:
        self.queues, self.base = {}, None


def curves(group: Group, since: datetime, until: datetime) -> Curves:
    """Reads the group's samples of the range, and draws them together."""
    found = list(hot_window.group_samples(group, since, until))
    samples = [one for one in found if isinstance(one, TopicSample)]
    gaps = [one for one in found if isinstance(one, Gap)]
    return drawn(samples, gaps, since, until)


def drawn(samples: Sequence[TopicSample], gaps: Sequence[Gap], since: datetime, until: datetime) -> Curves:
    """Returns the curves of samples that come in the order of time."""
    since_s, until_s = int(since.timestamp()), int(until.timestamp())
    step_s = max(STEP_S_MIN, -(-(until_s - since_s) // POINTS_MAX))
    unknown = [gap for gap in gaps if gap.state != SpanState.PARTIAL]
    held, position = _Held(), 0
    points: list[CurvePoint] = []
    of_queues: list[dict[MessageQueue, int | None]] = []
    for at_s in _ends(since_s, until_s, step_s):
        if any(gap.at_s < at_s and gap.until_s > at_s - step_s for gap in unknown):
            held.forget()
        while position < len(samples) and samples[position].at_s <= at_s:
            held.take(samples[position])
            position += 1
        is_gap = any(gap.at_s < at_s <= gap.until_s for gap in unknown)
        points.append(CurvePoint(_moment(at_s), None) if is_gap else _point(held, at_s))
        of_queues.append({} if is_gap else {queue: one.lag for queue, one in held.queues.items()})
    return Curves(since, until, points, _queue_curves(of_queues), gaps, _skew(of_queues))


def _ends(since_s: int, until_s: int, step_s: int) -> Iterator[int]:
    yield from range(since_s + step_s, until_s + 1, step_s)


def _point(held: _Held, at_s: int) -> CurvePoint:
    known = {queue: one for queue, one in held.queues.items() if one.lag is not None}
    if not known:
        held.base = None
        return CurvePoint(_moment(at_s), None)
    came = sum(one.max_offset or 0 for one in known.values())
    went = sum(one.committed_offset or 0 for one in known.values())
    base, names = held.base, frozenset(known)
    held.base = (at_s, names, came, went)
    in_per_s = out_per_s = None
    if base is not None and base[1] == names:
        in_per_s = _rate(came - base[2], at_s - base[0])
        out_per_s = _rate(went - base[3], at_s - base[0])
    return CurvePoint(
        at=_moment(at_s),
        lag=sum(one.lag or 0 for one in known.values()),
        in_per_s=in_per_s,
        out_per_s=out_per_s,
        waiting_s=max((round(wait, 1) for wait in held.waits(at_s)), default=None),
        dead=sum(held.dead.values()) if held.dead else None,
    )


def _rate(grown: int, seconds: int) -> float | None:
    """Returns messages a second; None where a total fell: an offset was moved back, or a topic made anew."""
    return round(grown / seconds, 3) if grown >= 0 else None


def _queue_curves(of_queues: Sequence[dict[MessageQueue, int | None]]) -> list[QueueCurve]:
    names = {queue for step in of_queues for queue in step}
    found = [QueueCurve(queue, [step.get(queue) for step in of_queues]) for queue in sorted(names)]
    return sorted(found, key=lambda curve: -(curve.lag or 0))[:QUEUES_MAX]


def _skew(of_queues: Sequence[dict[MessageQueue, int | None]]) -> float | None:
    lags = _known_lags(of_queues[-1].values()) if of_queues else []
    total = sum(lags)
    return round(max(lags) * len(lags) / total, 1) if len(lags) > 1 and total else None


def _known_lags(lags: Iterable[int | None]) -> list[int]:
    return [lag for lag in lags if lag is not None]


def _moment(at_s: int) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)
