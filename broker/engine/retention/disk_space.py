"""Protects the broker from a full disk, without the scheduler (RocketMQ's `CleanCommitLogService`).

| disk use | action |
|---|---|
| over 75 % (`diskMaxUsedSpaceRatio`) | expired segments are removed at once, whatever the hour |
| over 85 % (`diskSpaceCleanForciblyRatio`) | the oldest segments are removed whatever their age, until it is below |
| over 90 % (`diskSpaceWarningLevelRatio`) | clients' messages are refused, until it is below |

A segment with delayed, timer or half messages that still wait is never removed: new messages are refused rather than
acknowledged ones lost. The broker's own deliveries are not refused: only they allow such a segment to be removed.
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

# How often the disk is checked. RocketMQ does it every 10 s; senders can write 10 GB to a fast disk in that time.
DISK_CHECK_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class DiskUse:
    """The use of a disk. `used_percent` is computed as `df` does: of the space that unprivileged processes may use."""

    used_percent: float
    free_bytes: int


def disk_use(path: Path) -> DiskUse:
    """Returns the use of the disk that holds `path`. Raises OSError."""
    usage = os.statvfs(path)
    used, free = usage.f_blocks - usage.f_bfree, usage.f_bavail
    return DiskUse(100 * used / max(1, used + free), free * usage.f_frsize)


class DiskSpaceCheck:
    """Checks how full the disk is, and removes segments or refuses messages by the table above.

    Caller: a periodic task (`check`). Affects the store: removes its oldest segments, sets `full_because`.
    """

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

    async def check(self) -> None:
        """Checks the disk once, and removes at most `FILES_PER_PASS` segments. Raises OSError."""
        for number in range(FILES_PER_PASS):
            if number:
                await asyncio.sleep(PAUSE_BETWEEN_FILES_MS / 1000)
            use = self._disk(self._store.path)
            self._accept_or_refuse(use)
            if use.used_percent <= self._config.disk_clean_percent or not self._is_wanted(use):
                return
            if not await self._remover.remove():
                return

    def _accept_or_refuse(self, use: DiskUse) -> None:
        """Sets `full_because` of the store: while it is set, clients' messages are refused."""
        was_full = self._store.full_because is not None
        if use.used_percent <= self._config.disk_full_percent:
            self._store.full_because = None
            if was_full:
                logger.warning("the disk of %s is %.1f %% full: messages are accepted again", *self._figures(use))
            return
        self._store.full_because = (
            f"the disk of {self._store.path} is {use.used_percent:.1f} % full ({use.free_bytes >> 20} MiB free), and "
            f"messages are refused over {self._config.disk_full_percent} %: free space, or lower fileReservedTime"
        )
        if not was_full:
            logger.error("%s", self._store.full_because)

    def _is_wanted(self, use: DiskUse) -> bool:
        """Tells whether the oldest segment is to be removed now."""
        is_forced = use.used_percent > self._config.disk_force_percent
        oldest = self._store.retention.oldest
        may_go = oldest is not None and not oldest.is_pinned
        if is_forced and not may_go and not self._cannot_clean:
            pinned = "the oldest segment has delayed, timer or half messages that still wait"
            reason = pinned if oldest is not None else "there is only one segment, or a removal is under way"
            logger.warning("the disk of %s is %.1f %% full and nothing can be removed: " + reason, *self._figures(use))
        self._cannot_clean = is_forced and not may_go
        return oldest is not None and may_go and (is_forced or self._has_expired(oldest))

    def _has_expired(self, oldest: OldSegment) -> bool:
        """Tells whether the segment is older than `fileReservedTime`."""
        reserved_ms = self._config.file_reserved_hours * HOUR_MS
        return oldest.closed_ms is not None and oldest.closed_ms + reserved_ms <= self._clock()

    def _figures(self, use: DiskUse) -> tuple[Path, float]:
        """Returns the arguments of a log line about the disk."""
        return self._store.path, use.used_percent
