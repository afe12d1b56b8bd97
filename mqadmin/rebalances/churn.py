"""How restless a group is: its rebalances within an hour and a day, weighted by what they cost. Pure.

What happens within TOGETHER of the event before is one rebalance: members of one deployment start together, and what
follows from it is told in several events. It weighs as the heaviest of its events (WEIGHTS): a lost member weighs most,
since its messages are consumed again. The score is the sum of the weights.

>>> from datetime import UTC
>>> noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
>>> events = [(noon - timedelta(seconds=20), "queues_moved"), (noon - timedelta(seconds=30), "lost")]
>>> churn(events, noon).hour
Tally(rebalance_count=1, lost_count=1, score=3)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from mqadmin.rebalances.models import RebalanceKind

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# Two of RocketMQ's own rounds of 20 s, in which a change settles, and what polling adds.
TOGETHER = timedelta(seconds=60)
# Polling cannot say how a member went (GONE), so that weighs as leaving.
WEIGHTS: dict[str, int] = {
    RebalanceKind.JOINED: 1,
    RebalanceKind.LEFT: 1,
    RebalanceKind.GONE: 1,
    RebalanceKind.QUEUES_MOVED: 1,
    RebalanceKind.SUBSCRIPTION_CHANGED: 2,
    RebalanceKind.LOST: 3,
}


class Restlessness(StrEnum):
    CALM = "calm"
    RESTLESS = "restless"
    CHURNING = "churning"


# The first whose score of an hour, or of a day, is reached. Three deployments in an hour are nothing unusual; more than
# one rebalance in five minutes leaves members little time in between.
THRESHOLDS: Mapping[Restlessness, tuple[int, int]] = {
    Restlessness.CHURNING: (12, 96),
    Restlessness.RESTLESS: (5, 24),
}


class Tally(NamedTuple):
    """`lost_count`: members that were lost, which are events, not rebalances."""

    rebalance_count: int = 0
    lost_count: int = 0
    score: int = 0


@dataclass(frozen=True, slots=True)
class Churn:
    hour: Tally
    day: Tally

    @property
    def restlessness(self) -> Restlessness:
        for name, (of_hour, of_day) in THRESHOLDS.items():
            if self.hour.score >= of_hour or self.day.score >= of_day:
                return name
        return Restlessness.CALM


def churn(events: Iterable[tuple[datetime, str]], now: datetime) -> Churn:
    """Weighs the events (moment, kind), in any order; what is older or of a kind without weight does not count."""
    weighed = sorted((at, kind) for at, kind in events if kind in WEIGHTS and now - DAY <= at <= now)
    return Churn(_tally([one for one in weighed if one[0] >= now - HOUR]), _tally(weighed))


def _tally(events: list[tuple[datetime, str]]) -> Tally:
    """Counts events that come oldest first."""
    heaviest: list[int] = []
    for number, (_at, kind) in enumerate(events):
        if number == 0 or events[number][0] - events[number - 1][0] > TOGETHER:
            heaviest.append(0)
        heaviest[-1] = max(heaviest[-1], WEIGHTS[kind])
    return Tally(len(heaviest), sum(kind == RebalanceKind.LOST for _at, kind in events), sum(heaviest))
