"""Which member pulls which queue, as observed at the broker; members do not report it.

Kept per (group, topic, queue id). A queue whose member left keeps its last reader until another one pulls it, so that
the change can be reported with both names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

AssignmentKey = tuple[str, str, int]  # group, topic, queue id


@dataclass(slots=True)
class Assignment:
    """Times in ms since the epoch. `is_vacant`: its member left, and no other has pulled since."""

    client_id: str
    since_ms: int
    last_pull_ms: int
    is_vacant: bool = False


class Assignments:
    """`on_changed(key, from_client_id, to_client_id)`; the first reader of a queue comes from ""."""

    def __init__(self, clock: Callable[[], int], on_changed: Callable[[AssignmentKey, str, str], None]) -> None:
        self._clock = clock
        self._on_changed = on_changed
        self._groups: dict[str, dict[tuple[str, int], Assignment]] = {}

    def pulled(self, group: str, topic: str, queue_id: int, client_id: str) -> None:
        """Notes who pulls the queue. Called with every pull, so it does little."""
        now_ms = self._clock()
        queues = self._groups.setdefault(group, {})
        assignment = queues.get((topic, queue_id))
        if assignment is not None and assignment.client_id == client_id and not assignment.is_vacant:
            assignment.last_pull_ms = now_ms
            return
        before = assignment.client_id if assignment is not None else ""
        queues[topic, queue_id] = Assignment(client_id, now_ms, now_ms)
        self._on_changed((group, topic, queue_id), before, client_id)

    def left(self, group: str, client_id: str) -> None:
        """Marks the member's queues as vacant."""
        for assignment in self._groups.get(group, {}).values():
            if assignment.client_id == client_id:
                assignment.is_vacant = True

    def forget_group(self, group: str) -> None:
        self._groups.pop(group, None)

    def forget_topic(self, topic: str) -> None:
        for group, queues in list(self._groups.items()):
            for key in [key for key in queues if key[0] == topic]:
                del queues[key]
            if not queues:
                del self._groups[group]

    def of_group(self, group: str) -> Iterable[tuple[str, int, Assignment]]:
        """Yields (topic, queue id, assignment) of the queues that have a reader."""
        for (topic, queue_id), assignment in self._groups.get(group, {}).items():
            if not assignment.is_vacant:
                yield topic, queue_id, assignment
