"""Delayed delivery on a real store, over kills."""

from __future__ import annotations

from dataclasses import replace

from broker.engine.schedule.delay import DelayedDelivery
from broker.engine.schedule.entering import enter_schedule
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.levels import parse_levels
from broker.engine.schedule.progress import ProgressFile
from remoting.wire.properties import decode_properties
from tests.support.delay_levels import DEFAULT_LEVELS
from tests.support.stores import SMALL, ManualClock, abandon, draft, open_store

SECOND_MS = 1_000
LEVEL = 3
WAIT_MS = 10_000


class Schedule:
    """A store and the delivery on it, as a broker life has them; `restart_after_kill` begins the next life."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.sooner_count = 0
        self._start()

    def _start(self) -> None:
        self.levels = LevelHistory(self.folder / "config", DEFAULT_LEVELS)
        config = replace(SMALL, delay_levels_at=self.levels.delays_ms_at)
        self.store = open_store(self.folder, config, self.clock)
        self.file = ProgressFile(self.folder / "config" / "delayOffset.json")
        self.delivery = DelayedDelivery(self.store, self.levels, self.file, self._reschedule, self.clock)
        self.delivery.recover()
        self.store.add_append_listeners(self.delivery.appended)

    def _reschedule(self) -> None:
        self.sooner_count += 1

    def restart_after_kill(self) -> None:
        abandon(self.store)
        self.delivery.saving.forget()
        self._start()

    def close(self) -> None:
        self.delivery.saving.forget()
        self.store.close()

    def send(self, body: bytes, level: int = LEVEL, **fields) -> None:
        message = draft(body, **fields)
        enter_schedule(message, decode_properties(message.properties_text), level, self.levels.current, self.clock())
        self.store.append(message)

    def change_levels(self, text: str) -> None:
        end, low = self.store.max_commit_log_offset, self.store.min_commit_log_offset
        assert self.levels.change(parse_levels(text), end=end, low=low)
        self.delivery.levels_changed()

    def deliver(self, level: int = LEVEL, until_ms: int | None = None) -> int:
        until_ms = self.clock() if until_ms is None else until_ms
        return self.delivery.carry_out(str(level), until_ms).count
