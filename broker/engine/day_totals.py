"""How much had been counted at the last two midnights (`BrokerStats`): tools show "today" and "yesterday"."""

from __future__ import annotations

import time
from collections.abc import Callable

# How often somebody must look for a midnight to be noticed in time.
LOOK_INTERVAL_S = 30.0


class DayTotals:
    """`total()`: all that was counted since the start. `clock`: ms since the epoch; days are those of the machine."""

    def __init__(self, total: Callable[[], int], clock: Callable[[], int]) -> None:
        self._total = total
        self._clock = clock
        self._day = self._today()
        self.yesterday_morning = 0
        self.this_morning = 0

    def look(self) -> None:
        today = self._today()
        if today != self._day:
            self._day = today
            self.yesterday_morning, self.this_morning = self.this_morning, self._total()

    @property
    def now(self) -> int:
        return self._total()

    def _today(self) -> tuple[int, int]:
        moment = time.localtime(self._clock() / 1000)
        return moment.tm_year, moment.tm_yday
