"""Reads the outboxes of this project's databases: what waits to be sent, what was given up, what was sent lately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from consumer.outbox.models import OutboxMessage, OutboxState
from consumer.outbox.settings import outbox_settings
from mqadmin.clusters.selectors.newest_first import read_cursor, rows_behind, write_cursor

PAGE_SIZE = 50
# A count ends there: counting a million rows costs a second.
COUNT_MAX = 10_000
# Waiting ones first: whoever looks asks what is not sent, and why.
STATES = (OutboxState.PENDING, OutboxState.FAILED, OutboxState.SENT)
# Bodies may be large, and hold what not everybody may read.
_NOT_SHOWN = ("body", "options")


@dataclass(frozen=True, slots=True)
class OutboxCounts:
    """By state, each COUNT_MAX at most; `waiting_since` is the moment at which the oldest that waits was written."""

    waiting: int
    given_up: int
    sent: int
    waiting_since: datetime | None


@dataclass(frozen=True, slots=True)
class OutboxRows:
    """Messages of one state in one database: those that wait in the order in which they are sent, others newest first.

    A position is (when it ended, or was written while it waits; primary key).
    """

    database: str
    state: OutboxState

    def after(self, position: Sequence[Any] | None, size: int) -> list[OutboxMessage]:
        """Returns at most `size` rows behind the position, None for the first ones."""
        rows = OutboxMessage.objects.using(self.database).filter(state=self.state).defer(*_NOT_SHOWN)
        if self.state == OutboxState.PENDING:
            behind = rows.filter(pk__gt=position[1]) if position is not None else rows
            return list(behind.order_by("ended_at", "pk")[:size])
        if position is not None:
            rows = rows_behind(rows, "ended_at", position[0], position[1])
        return list(rows.order_by("-ended_at", "-pk")[:size])

    def position(self, row: OutboxMessage) -> list[Any]:
        """Returns the position of a row, as plain JSON."""
        return [(row.ended_at or row.created_at).isoformat(), row.pk]

    def total_count(self) -> None:
        """Not counted: there may be a million."""

    def page(self, before: str) -> tuple[list[OutboxMessage], str]:
        """Returns PAGE_SIZE rows behind a cursor, and the cursor of the next ones, "" on the last page."""
        found = self.after(read_cursor(before), PAGE_SIZE + 1)
        rows = found[:PAGE_SIZE]
        last = rows[-1] if len(found) > PAGE_SIZE else None
        return rows, write_cursor(last.ended_at or last.created_at, last.pk) if last is not None else ""


def databases() -> Sequence[str]:
    """Returns the databases that have an outbox. Raises ImproperlyConfigured."""
    return outbox_settings().databases


def counts(database: str) -> OutboxCounts:
    rows = OutboxMessage.objects.using(database)
    waiting, given_up, sent = (rows.filter(state=state)[:COUNT_MAX].count() for state in STATES)
    oldest = rows.filter(state=OutboxState.PENDING).order_by("ended_at", "pk").values_list("created_at", flat=True)
    return OutboxCounts(waiting, given_up, sent, oldest.first())
