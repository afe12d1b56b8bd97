"""Which queues a member owns: one pure function per strategy, by RocketMQ's own name, and a team's own functions.

Every member computes this alone, or has the broker compute it (QUERY_ASSIGNMENT), and all must come to the same
partition, so both lists are sorted here as Java sorts them, and the strategies may not look at anything else. What a
strategy returns is checked: a queue that does not exist, or nothing at all, would leave messages unread in silence.

Strategies with parameters are values of their own: `ConsistentHash`, `MachineRoom`, `MachineRoomNearby`, `Configured`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from remoting.allocation.average import average
from remoting.allocation.circle import circle
from remoting.allocation.configured import Configured
from remoting.allocation.consistent_hash import ConsistentHash
from remoting.allocation.machine_room import MachineRoom
from remoting.allocation.machine_room_nearby import MachineRoomNearby
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.error_text import error_text

__all__ = [
    "STRATEGIES",
    "AllocationError",
    "Configured",
    "ConsistentHash",
    "MachineRoom",
    "MachineRoomNearby",
    "Strategy",
    "allocate",
    "strategy_name",
]

# Takes the sorted queues of one topic, the sorted client ids of the group, and one of them; returns the queues of it.
Strategy = Callable[[Sequence[MessageQueue], Sequence[str], str], Iterable[MessageQueue]]

# Those without parameters.
STRATEGIES: dict[str, Strategy] = {
    "AVG": average,
    "AVG_BY_CIRCLE": circle,
    "CONSISTENT_HASH": ConsistentHash(),
}


class AllocationError(Exception):
    """A strategy failed or returned what cannot be owned; the text names the strategy and what it returned."""


def allocate(
    strategy: str | Strategy, queues: Iterable[MessageQueue], members: Iterable[str], me: str
) -> frozenset[MessageQueue]:
    """Returns the queues of `me`; none when there is no queue or `me` is no member (where Java raises or warns).

    `strategy` is a name of `STRATEGIES`, or a function. Raises KeyError for another name, AllocationError for a
    function that raises, or returns anything else than some of `queues`.
    """
    chosen = STRATEGIES[strategy] if isinstance(strategy, str) else strategy
    all_queues = sorted(set(queues))
    in_order = sorted(set(members), key=_java_order)
    if me not in in_order or not all_queues:
        return frozenset()
    try:
        return _checked(chosen(all_queues, in_order, me), frozenset(all_queues))
    except BaseException as error:  # SystemExit in a team's function ends no member
        raise AllocationError(
            f"allocation strategy {strategy_name(strategy)} cannot be used for {len(all_queues)} queues of topic"
            f" {all_queues[0].topic!r} and {len(in_order)} members: {type(error).__name__}: {error_text(error)}"
        ) from error


def strategy_name(strategy: str | Strategy) -> str:
    """Returns RocketMQ's name; of a team's own function where it is defined."""
    if isinstance(strategy, str):
        return strategy
    name = getattr(strategy, "name", None)
    if isinstance(name, str):
        return name
    where = getattr(strategy, "__qualname__", None) or type(strategy).__qualname__
    return f"{getattr(strategy, '__module__', '?')}.{where}"


def _checked(allocated: object, queues: frozenset[MessageQueue]) -> frozenset[MessageQueue]:
    """Returns the result without duplicates. Raises TypeError or ValueError that says what is wrong with it."""
    if not isinstance(allocated, Iterable) or isinstance(allocated, str | bytes | MessageQueue):
        raise TypeError(f"it returned {allocated!r}; a list of message queues is needed, empty for none")
    chosen: set[MessageQueue] = set()
    for queue in allocated:
        if not isinstance(queue, MessageQueue):
            raise TypeError(f"it returned {queue!r} among the queues; only the message queues it was given may be")
        if queue not in queues:
            raise ValueError(f"it returned {queue}, which is none of the queues it was given")
        chosen.add(queue)
    return frozenset(chosen)


def _java_order(client_id: str) -> bytes:
    """Returns the key by which Java orders strings: their UTF-16 units."""
    return client_id.encode("utf-16-be", "surrogatepass")
