"""Private: the scheduler's agenda, what waits for its time on a broker (docs/PRIVATE-REQUESTS.md)."""

from __future__ import annotations

from remoting.wire.bodies.document import Document


class AgendaEntry(Document, kw_only=True):
    """One scheduled kind and key with messages waiting, e.g. kind "delay", key "3".

    `next_due_ms`: when the first of it falls due, ms since the epoch. `late_ms`: how late the last delivery was,
    -1 before the first.
    """

    kind: str
    key: str
    next_due_ms: int
    waiting_count: int
    late_ms: int = -1


class Agenda(Document, kw_only=True):
    """All kinds and keys with something waiting."""

    entries: list[AgendaEntry] = []  # noqa: RUF012 - msgspec copies a default per instance
