"""How often the follower does what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """`rows_per_s_max`: of one cluster, whatever the number of its brokers, over any longer time, snapshots aside."""

    # As long as our broker lets a watch wait.
    watch_wait_ms: int = 30_000
    # How long the first watch after a pause waits: its answer makes the rows current, also one without news.
    rested_wait_ms: int = 500
    # Between two answers, so that a storm of changes costs a bounded number of transactions.
    cycle_s_min: float = 0.1
    rows_per_s_max: float = 500.0
    # How often is rewritten what changes by time alone: ages, and verdicts that depend on them.
    tick_s: float = 5.0
    # Between two writes of what following cost.
    costs_s: float = 60.0
    backoff_s: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0)

    def pause_s(self, failure_count: int) -> float:
        """Returns how long to wait after so many failures in a row, 1 or more."""
        return self.backoff_s[min(failure_count, len(self.backoff_s)) - 1]


PACE = Pace()
