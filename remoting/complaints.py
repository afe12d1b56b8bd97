"""Warnings about peers, at most one line a minute for each host and kind of complaint, with the number left out.

Owns the count of the warnings that were not written. Refuses to grow: beyond `entries_max` pairs of host and kind,
all further hosts share one entry per kind, so neither the log nor the memory depends on how many hosts misbehave.
A kind is a short constant text ("unknown request code"), never made of what the peer sent.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

logger = logging.getLogger(__name__)

# The same complaint about the same host is written once in this time.
INTERVAL_S = 60.0
# Pairs of host and kind with lines of their own: the most lines in one interval, apart from the shared ones.
ENTRIES_MAX = 256
# Stands in the log for all hosts beyond these.
OTHER_HOSTS = "other hosts"


@dataclass(slots=True)
class _Entry:
    """One host and kind since its last line: `written_s` on the clock, `left_out_count` warnings since."""

    written_s: float
    left_out_count: int = 0


class ComplaintLog:
    """Callers: connections, their server and the request table, from the event loop; one may serve all of them.

    `clock` returns monotonic seconds.
    """

    def __init__(
        self,
        *,
        interval_s: float = INTERVAL_S,
        entries_max: int = ENTRIES_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._interval_s = interval_s
        self._entries_max = entries_max
        self._clock = clock
        # In order of their last line.
        self._entries: dict[tuple[str, str], _Entry] = {}

    def warn(self, host: str, kind: str, message: str, *args: object) -> None:
        """Writes `message % args` as a warning, or counts it when `host` had a line of this `kind` within the interval.

        A line that follows others left out says how many. What is left out is still written at debug level.
        """
        now_s = self._clock()
        key = (host, kind)
        entry = self._entries.get(key)
        if entry is None and len(self._entries) >= self._entries_max:
            self.report_left_out()
            if len(self._entries) >= self._entries_max:
                key = (OTHER_HOSTS, kind)
                entry = self._entries.get(key)
        if entry is not None and now_s - entry.written_s < self._interval_s:
            entry.left_out_count += 1
            logger.debug(message, *args)
            return
        self._entries.pop(key, None)
        self._entries[key] = _Entry(now_s)
        if entry is not None and entry.left_out_count:
            message, args = message + "; %s", (*args, self._left_out_text(key, entry, now_s))
        logger.warning(message, *args)

    def report_left_out(self) -> None:
        """Writes one line for each host and kind whose interval is over with warnings left out; forgets the others.

        To be called now and then, so that the number is known even when the peer has stopped.
        """
        now_s = self._clock()
        while self._entries:
            key, entry = next(iter(self._entries.items()))
            if now_s - entry.written_s < self._interval_s:
                return
            del self._entries[key]
            if entry.left_out_count:
                self._entries[key] = _Entry(now_s)
                logger.warning("%s", self._left_out_text(key, entry, now_s))

    def _left_out_text(self, key: tuple[str, str], entry: _Entry, now_s: float) -> str:
        host, kind = key
        return f"{host}, {kind}: {entry.left_out_count} more in {now_s - entry.written_s:.0f} s were not logged"
