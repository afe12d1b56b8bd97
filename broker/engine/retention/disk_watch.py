"""What keeps the broker safe from a full disk; no scheduler is needed for it (`CleanCommitLogService`).

| the disk is used | then |
|---|---|
| over 75 % (`diskMaxUsedSpaceRatio`) | expired segments go at once, whatever the hour |
| over 85 % (`diskSpaceCleanForciblyRatio`) | the oldest segments go whatever their age, until it is below |
| over 90 % (`diskSpaceWarningLevelRatio`) | clients' messages are refused, until it is below |

A segment that holds what still waits (delayed, timer, half messages) never goes: then messages are refused rather than
acknowledged ones lost. What the broker itself delivers is not refused, because that is what lets the segments go.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from broker.engine.config import BrokerConfig
from broker.engine.retention.remover import Remover
from broker.engine.retention.rules import HOUR_MS
from broker.engine.retention.scheduled import FILES_PER_PASS, PAUSE_BETWEEN_FILES_MS
from broker.engine.store.message_store import MessageStore
from broker.engine.store.retention import OldSegment

logger = logging.getLogger(__name__)

# How often the disk is looked at. RocketMQ does every 10 s; a fast disk takes 10 GB in that time.
LOOK_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class DiskUse:
    """`used_percent`: of the space that this process may use, as `df` says."""

    used_percent: float
    free_bytes: int


def disk_use(path: Path) -> DiskUse:
    """Raises OSError."""
    usage = os.statvfs(path)
    used, free = usage.f_blocks - usage.f_bfree, usage.f_bavail
    return DiskUse(100 * used / max(1, used + free), free * usage.f_frsize)


class DiskWatch:
    """Callers: a loop of the runtime (`look`). Affects the store: its oldest segments, and whether it is `full`."""

    def __init__(
        self,
        store: MessageStore,
        remover: Remover,
        config: BrokerConfig,
        clock: Callable[[], int],
        disk: Callable[[Path], DiskUse] = disk_use,
    ) -> None:
        self._store = store
        self._remover = remover
        self._config = config
        self._clock = clock
        self._disk = disk
        self._cannot_clean = False

    async def look(self) -> None:
        """One round. Raises OSError when the disk cannot be asked."""
        for number in range(FILES_PER_PASS):
            if number:
                await asyncio.sleep(PAUSE_BETWEEN_FILES_MS / 1000)
            use = self._disk(self._store.path)
            self._judge(use)
            if use.used_percent <= self._config.disk_clean_percent or not self._is_wanted(use):
                return
            if not await self._remover.remove():
                return

    def _judge(self, use: DiskUse) -> None:
        """Refuses clients' messages, or lifts that."""
        was_full = self._store.full_because is not None
        if use.used_percent <= self._config.disk_full_percent:
            self._store.full_because = None
            if was_full:
                logger.warning("the disk of %s is %.1f %% full: messages are taken again", *self._figures(use))
            return
        self._store.full_because = (
            f"the disk of {self._store.path} is {use.used_percent:.1f} % full ({use.free_bytes >> 20} MiB free), and "
            f"messages are refused over {self._config.disk_full_percent} %: free space, or lower fileReservedTime"
        )
        if not was_full:
            logger.error("%s", self._store.full_because)

    def _is_wanted(self, use: DiskUse) -> bool:
        """Whether the oldest segment is to go."""
        is_forced = use.used_percent > self._config.disk_force_percent
        oldest = self._store.retention.oldest
        may_go = oldest is not None and not oldest.is_pinned
        if is_forced and not may_go and not self._cannot_clean:
            reason = "what waits for its time is in the oldest segment" if oldest is not None else "one segment is left"
            logger.warning("the disk of %s is %.1f %% full and nothing can be removed: " + reason, *self._figures(use))
        self._cannot_clean = is_forced and not may_go
        return oldest is not None and may_go and (is_forced or self._has_expired(oldest))

    def _has_expired(self, oldest: OldSegment) -> bool:
        reserved_ms = self._config.file_reserved_hours * HOUR_MS
        return oldest.closed_ms is not None and oldest.closed_ms + reserved_ms <= self._clock()

    def _figures(self, use: DiskUse) -> tuple[Path, float]:
        return self._store.path, use.used_percent
