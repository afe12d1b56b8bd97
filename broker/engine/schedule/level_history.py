"""Which table of delay levels was in force from which commit-log offset on, kept in `config/delayLevels.json`.

The table can change while messages wait. Those keep the due time that they were stored with, also when their queue is
indexed again from the log: it is computed from the table that was in force at their commit-log offset. Recovery needs
this before anything else, so the file is on the disk before a changed table applies to the first message.
"""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

from broker.engine.config_files import load_config_file, save_config_file
from broker.engine.schedule.levels import DelayLevels, parse_levels
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.document import Document

FILE_NAME = "delayLevels.json"


class LevelsSince(Document, kw_only=True):
    """A table of delay levels in RocketMQ's notation, and the commit-log offset from which on it is in force."""

    commit_log_offset: int
    levels: str


class LevelsFile(Document, kw_only=True):
    """The content of the file, the oldest table first."""

    tables: list[LevelsSince] = []  # noqa: RUF012 - msgspec copies a default per instance


class LevelHistory:
    """The tables of delay levels that are or were in force; `current` applies to messages that are stored now."""

    def __init__(self, folder: Path, first: DelayLevels, complaints: ComplaintLog | None = None) -> None:
        """`first` is the table where there is no file. Raises ConfigFileUnreadable, DelayLevelError."""
        self._path = folder / FILE_NAME
        self._complaints = complaints or ComplaintLog()
        file = load_config_file(self._path, LevelsFile)
        tables = [(one.commit_log_offset, parse_levels(one.levels)) for one in file.tables] if file else []
        self._is_kept = bool(tables)
        self._tables = tables or [(0, first)]

    @property
    def current(self) -> DelayLevels:
        return self._tables[-1][1]

    @property
    def changes(self) -> list[tuple[int, DelayLevels]]:
        """Returns (commit-log offset, table in force from there on), oldest first."""
        return list(self._tables)

    def at(self, commit_log_offset: int) -> DelayLevels:
        """Returns the table that applies to a message stored at `commit_log_offset`."""
        index = bisect_right(self._tables, commit_log_offset, key=lambda table: table[0])
        return self._tables[max(0, index - 1)][1]

    def delays_ms_at(self, commit_log_offset: int) -> tuple[int, ...]:
        return self.at(commit_log_offset).delays_ms

    def change(self, levels: DelayLevels, *, end: int, low: int) -> bool:
        """Puts `levels` in force from `end`, the end of the log, on, and forgets tables that applied only before `low`,
        its start.

        Returns False when `levels` are in force already; the first table is written to the file then, if there is none
        yet. Raises ConfigFileUnwritable; then nothing has changed.
        """
        if levels == self.current:
            if not self._is_kept:
                self._save(self._tables)
            return False
        kept = [table for table, after in zip(self._tables, self._tables[1:], strict=False) if after[0] > low]
        last = self._tables[-1]
        tables = [*kept, last, (end, levels)] if last[0] < end else [*kept, (end, levels)]
        self._save(tables)
        return True

    def _save(self, tables: list[tuple[int, DelayLevels]]) -> None:
        lines = [LevelsSince(commit_log_offset=since, levels=str(table)) for since, table in tables]
        save_config_file(self._path, LevelsFile(tables=lines), self._complaints)
        self._tables, self._is_kept = tables, True
