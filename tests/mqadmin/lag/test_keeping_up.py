"""A group that keeps up is never in alarm, whatever comes: made-up traffic, sampled and judged as polling does it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from mqadmin.clusters import waiting
from mqadmin.clusters.models import NEEDS_ATTENTION, Verdict
from mqadmin.lag import history
from mqadmin.lag.sums import GroupRows, QueueEnd, QueueRow, Sums, sums
from mqadmin.lag.verdicts import GROWTH_WINDOW_S, Judgement, VerdictInput, judge, settled
from mqadmin.objectives.values import DEFAULT_LAG_S
from remoting.wire.bodies.message_queue import MessageQueue

BEGUN_S = 1_767_323_040
QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(3)]
# RocketMQ's clients commit what they have finished every 5 s; a cycle of polling comes every 15 s, a little late.
COMMIT_EVERY_S = 5
CYCLE_S, CYCLE_LATE_S_MAX = 15, 5
# With what sampling and committing add, no message waits for longer than the objective.
TAKES_S_MAX = DEFAULT_LAG_S - COMMIT_EVERY_S - CYCLE_S - CYCLE_LATE_S_MAX


class Burst(NamedTuple):
    """So many messages come to a queue, so long after the burst before, and are finished so much later."""

    gap_s: int
    queue: int
    count: int
    takes_s: int


BURSTS = st.lists(
    st.builds(
        Burst,
        st.integers(0, 90),
        st.integers(0, len(QUEUES) - 1),
        st.integers(1, 100_000),
        st.integers(0, TAKES_S_MAX),
    ),
    min_size=1,
    max_size=40,
)


class Traffic:
    """What came to each queue, and what was finished of it, at any second."""

    def __init__(self, bursts: list[Burst]) -> None:
        self._came: list[list[tuple[int, int, int]]] = [[] for _ in QUEUES]
        at_s = 0
        for burst in bursts:
            at_s += burst.gap_s
            self._came[burst.queue].append((at_s, at_s + burst.takes_s, burst.count))
        self.ends_s = at_s + TAKES_S_MAX

    def end(self, queue: int, at_s: int) -> int:
        return sum(count for came_s, _, count in self._came[queue] if came_s <= at_s)

    def finished(self, queue: int, at_s: int) -> int:
        """Returns the queue offset after the last message before which all are finished."""
        total = 0
        for came_s, done_s, count in self._came[queue]:
            if came_s > at_s or done_s > at_s:
                break
            total += count
        return total


class Sampler:
    """Takes samples and judges them; keeps what the rows of the console keep."""

    def __init__(self, traffic: Traffic, *, commit_phase_s: int) -> None:
        self._traffic = traffic
        self._commit_phase_s = commit_phase_s
        self._ends = [b""] * len(QUEUES)
        self._committed: list[tuple[int, datetime] | None] = [None] * len(QUEUES)
        self._moved_at: datetime | None = None
        self._lags = b""
        self._was: Verdict | None = None
        self._calm_since: datetime | None = None

    def look(self, at_s: int) -> Judgement:
        now = datetime.fromtimestamp(BEGUN_S + at_s, UTC)
        flushed_s = (at_s - self._commit_phase_s) // COMMIT_EVERY_S * COMMIT_EVERY_S + self._commit_phase_s
        for number in range(len(QUEUES)):
            committed_offset = self._traffic.finished(number, flushed_s)
            before = self._committed[number]
            if before is None or before[0] != committed_offset:
                self._moved_at = self._moved_at if before is None else now
                self._committed[number] = committed_offset, now
            self._ends[number] = waiting.noted(self._ends[number], BEGUN_S + at_s, self._traffic.end(number, at_s))
        return self._judged(self._sums(at_s), now)

    def _sums(self, at_s: int) -> Sums:
        known = [(queue, one) for queue, one in zip(QUEUES, self._committed, strict=True) if one is not None]
        return sums(
            GroupRows(
                rows=[QueueRow(*queue, number, *one) for number, (queue, one) in enumerate(known)],
                ends={
                    queue: QueueEnd(self._traffic.end(number, at_s), self._ends[number], None)
                    for number, queue in enumerate(QUEUES)
                },
            ),
            away=(),
        )

    def _judged(self, total: Sums, now: datetime) -> Judgement:
        now_s = int(now.timestamp())
        known = VerdictInput(
            now=now,
            member_count=1,
            lag=total.lag,
            lag_before=history.lag_at(self._lags, now_s - GROWTH_WINDOW_S),
            behind_since=total.behind.since,
            seen_until=now,
            standing_since=total.standing_since,
            moved_at=self._moved_at,
            was=self._was,
        )
        judged, self._calm_since = settled(known, judge(known), self._calm_since)
        self._was = judged.verdict
        self._lags = history.appended(self._lags, history.LagSample(now_s, total.lag))
        return judged


def cycles(until_s: int, late_s: list[int]) -> Iterator[int]:
    for number in range(until_s // CYCLE_S + 2):
        yield number * CYCLE_S + late_s[number % len(late_s)]


@given(
    bursts=BURSTS,
    commit_phase_s=st.integers(0, COMMIT_EVERY_S - 1),
    late_s=st.lists(st.integers(0, CYCLE_LATE_S_MAX), min_size=1, max_size=7),
)
def test_group_that_finishes_each_message_within_its_objective_is_never_in_alarm(
    bursts: list[Burst], commit_phase_s: int, late_s: list[int]
) -> None:
    traffic = Traffic(bursts)
    sampler = Sampler(traffic, commit_phase_s=commit_phase_s)
    words = {sampler.look(at_s).verdict for at_s in cycles(traffic.ends_s, late_s)}
    assert not words & set(NEEDS_ATTENTION)


def test_the_same_traffic_that_is_never_finished_is_stalled() -> None:
    traffic = Traffic([Burst(30, 0, 10, 10**6)])
    sampler = Sampler(traffic, commit_phase_s=0)
    assert [sampler.look(at_s).verdict for at_s in range(0, 151, CYCLE_S)][-1] == Verdict.STALLED
