"""Holds a rate: a bucket that fills with time and from which every send takes one. Pure: time is an argument."""

from __future__ import annotations

from dataclasses import dataclass

# What a pause of the driver (a write to the database, a slow broker) may be caught up by.
CATCH_UP_S = 1.0


@dataclass(slots=True)
class Pace:
    """`rate_per_s` sends a second on average, from `at_s` on; times are monotonic seconds.

    At most what CATCH_UP_S holds is sent at once, after as long without a send.
    """

    rate_per_s: float
    at_s: float
    tokens: float = 0.0

    def wait_s(self, now_s: float) -> float:
        """Takes one send; returns for how long it must wait."""
        self._fill(now_s)
        self.tokens -= 1.0
        return max(0.0, -self.tokens / self.rate_per_s)

    def change(self, rate_per_s: float, now_s: float) -> None:
        """Goes on at another rate; what was allowed up to now was allowed at the former one."""
        if rate_per_s != self.rate_per_s:
            self._fill(now_s)
            self.tokens = min(self.tokens, 0.0)
            self.rate_per_s = rate_per_s

    def behind_s(self, now_s: float) -> float:
        """Returns how long ago an empty bucket would have begun to fill: from then on the next step may send."""
        self._fill(now_s)
        return max(0.0, self.tokens / self.rate_per_s)

    def _fill(self, now_s: float) -> None:
        gained = max(0.0, now_s - self.at_s) * self.rate_per_s
        self.tokens = min(self.tokens + gained, max(1.0, self.rate_per_s * CATCH_UP_S))
        self.at_s = max(self.at_s, now_s)
