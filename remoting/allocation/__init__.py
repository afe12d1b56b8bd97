"""Which queues a member owns: one pure function per strategy, by RocketMQ's own name.

Every member computes this alone, or has the broker compute it (QUERY_ASSIGNMENT), and all must come to the same
partition, so both lists are sorted here as Java sorts
them, and the strategies may not look at anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from remoting.allocation.average import average
from remoting.allocation.circle import circle
from remoting.wire.bodies.message_queue import MessageQueue

Strategy = Callable[[Sequence[MessageQueue], Sequence[str], str], list[MessageQueue]]

STRATEGIES: dict[str, Strategy] = {
    "AVG": average,
    "AVG_BY_CIRCLE": circle,
}


def allocate(strategy: str, queues: Iterable[MessageQueue], members: Iterable[str], me: str) -> frozenset[MessageQueue]:
    """Returns the queues of `me`; none when there is no queue or `me` is no member (where Java raises or warns).

    Raises KeyError for a strategy that the table does not hold.
    """
    chosen = STRATEGIES[strategy]
    in_order = sorted(set(members), key=_java_order)
    if me not in in_order:
        return frozenset()
    return frozenset(chosen(sorted(set(queues)), in_order, me))


def _java_order(client_id: str) -> bytes:
    """Returns the key by which Java orders strings: their UTF-16 units."""
    return client_id.encode("utf-16-be", "surrogatepass")
