"""Queues of a group as lines of a table: by topic, the retry topic last, its name quiet where it repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqadmin.clusters.shapes import QueueRow


@dataclass(frozen=True, slots=True)
class QueueLine:
    """`is_first` of its topic."""

    queue: QueueRow
    is_first: bool


def queue_lines(queues: Sequence[QueueRow]) -> list[QueueLine]:
    """The selector's order (topic, broker, number), with retry topics moved to the end."""
    ordered = sorted(queues, key=lambda queue: queue.is_retry)
    before = [None, *ordered[:-1]]
    return [
        QueueLine(queue, is_first=last is None or last.topic_name != queue.topic_name)
        for last, queue in zip(before, ordered, strict=True)
    ]
