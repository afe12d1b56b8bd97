"""Members of a group as lines of a table: each with its queues, by topic, and what waits on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from mqadmin.clusters.shapes import MemberRow, QueueRow


@dataclass(frozen=True, slots=True)
class MemberLine:
    """`queues`: topic and what its queues are called. `lag`: over its queues; None when one of them is not known."""

    member: MemberRow
    queues: list[tuple[str, list[str]]]
    lag: int | None


def member_lines(members: Iterable[MemberRow]) -> list[MemberLine]:
    return [MemberLine(member, queues_by_topic(member.queues), _lag(member.queues)) for member in members]


def queues_by_topic(queues: Iterable[QueueRow]) -> list[tuple[str, list[str]]]:
    """The topics' own order is kept; the retry topic, which every member reads, comes last."""
    found: defaultdict[tuple[bool, str], list[QueueRow]] = defaultdict(list)
    for queue in queues:
        found[queue.is_retry, queue.topic_name].append(queue)
    return [(topic, _queue_names(found[is_retry, topic])) for is_retry, topic in sorted(found)]


def _queue_names(queues: list[QueueRow]) -> list[str]:
    """Plain numbers where all lie on one broker, else the broker too."""
    if len({queue.broker_name for queue in queues}) == 1:
        return [str(queue.queue_id) for queue in queues]
    return [f"{queue.broker_name} {queue.queue_id}" for queue in queues]


def _lag(queues: Iterable[QueueRow]) -> int | None:
    total = 0
    for queue in queues:
        if queue.lag is None:
            return None
        total += queue.lag
    return total
