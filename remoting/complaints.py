"""Lines that may recur, at most one in an interval for each subject and kind, with the number left out.

A subject is what is complained about: a peer's host, a broker, a topic, a file. A kind is a short constant text
("unknown request code"), never made of what a peer sent. Owns the count of the lines that were not written. Refuses to
grow: beyond `entries_max` pairs of both, all further subjects share one entry per kind, so neither the log nor the
memory depends on how many of them give trouble.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

logger = logging.getLogger(__name__)

# The same complaint about the same subject is written once in this time.
INTERVAL_S = 60.0
# Pairs of subject and kind with lines of their own: the most lines in one interval, apart from the shared ones.
ENTRIES_MAX = 256
# Stands in the log for all subjects beyond these.
OTHERS = "others"


@dataclass(slots=True)
class _Entry:
    """One subject and kind since its last line, of `level`: `written_s` on the clock, `left_out_count` lines since."""

    written_s: float
    level: int
    left_out_count: int = 0


class ComplaintLog:
    """Callers: connections, their server and what handles requests, which may share one; loops of consumers.

    On the event loop.

    `log` gets the lines; `clock` returns monotonic seconds.
    """

    def __init__(
        self,
        log: logging.Logger = logger,
        *,
        interval_s: float = INTERVAL_S,
        entries_max: int = ENTRIES_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._interval_s = interval_s
        self._entries_max = entries_max
        self._clock = clock
        # In order of their last line.
        self._entries: dict[tuple[str, str], _Entry] = {}

    def warn(self, subject: str, kind: str, message: str, *args: object) -> None:
        """Writes `message % args` as a warning, or counts it if `subject` had a line of this `kind` in the interval.

        A line that follows others left out says how many. What is left out is still written at debug level.
        """
        self._write(logging.WARNING, subject, kind, message, *args)

    def info(self, subject: str, kind: str, message: str, *args: object) -> None:
        """Writes as `warn` does, at info level: what is no fault, but comes as often as a peer likes."""
        self._write(logging.INFO, subject, kind, message, *args)

    def error(self, subject: str, kind: str, message: str, *args: object) -> None:
        """Writes as `warn` does, at error level: what somebody has to mend."""
        self._write(logging.ERROR, subject, kind, message, *args)

    def exception(self, subject: str, kind: str, message: str, *args: object) -> None:
        """Writes as `warn` does, as an error and with the traceback of the exception that is being handled."""
        self._write(logging.ERROR, subject, kind, message, *args, with_traceback=True)

    def resolved(self, subject: str, kind: str) -> None:
        """Forgets the complaint: the next one is written at once."""
        self._entries.pop((subject, kind), None)

    def _write(
        self, level: int, subject: str, kind: str, message: str, *args: object, with_traceback: bool = False
    ) -> None:
        now_s = self._clock()
        key = (subject, kind)
        entry = self._entries.get(key)
        if entry is None and len(self._entries) >= self._entries_max:
            self.report_left_out()
            if len(self._entries) >= self._entries_max:
                key = (OTHERS, kind)
                entry = self._entries.get(key)
        if entry is not None and now_s - entry.written_s < self._interval_s:
            entry.left_out_count += 1
            self._log.debug(message, *args)
            return
        self._entries.pop(key, None)
        self._entries[key] = _Entry(now_s, level)
        if entry is not None and entry.left_out_count:
            message, args = message + "; %s", (*args, self._left_out_text(key, entry, now_s))
        self._log.log(level, message, *args, exc_info=with_traceback)

    def report_left_out(self) -> None:
        """Writes one line for each subject and kind whose interval is over with lines left out; forgets the others.

        To be called now and then, so that the number is known even when the trouble has stopped.
        """
        now_s = self._clock()
        while self._entries:
            key, entry = next(iter(self._entries.items()))
            if now_s - entry.written_s < self._interval_s:
                return
            del self._entries[key]
            if entry.left_out_count:
                self._entries[key] = _Entry(now_s, entry.level)
                # The count of errors is none itself; that of infos is no warning.
                level = min(entry.level, logging.WARNING)
                self._log.log(level, "%s", self._left_out_text(key, entry, now_s))

    def _left_out_text(self, key: tuple[str, str], entry: _Entry, now_s: float) -> str:
        subject, kind = key
        return f"{subject}, {kind}: {entry.left_out_count} more in {now_s - entry.written_s:.0f} s were not logged"
