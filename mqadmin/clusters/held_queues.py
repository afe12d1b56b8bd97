"""What members say of the queues that they hold: where they are in them, and what they have in flight. Pure.

A member holds what it has pulled and not finished: those messages are in flight. The rows are as JSON keeps them:
[topic, broker, queue id, next offset (null: not told), since when it is that in seconds, messages in flight, whether
they come again and again].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from remoting.wire.bodies.message_queue import MessageQueue


class HeldQueue(NamedTuple):
    """One queue of a member. `next_offset`: the next to consume, None where it did not say.

    `since_s`: since when, as far as its answers tell, that is what it is, in seconds since the epoch. `is_failing`:
    in order, its first message was given to the listener and failed, and is given to it again.
    """

    queue: MessageQueue
    next_offset: int | None
    since_s: float
    in_flight_count: int = 0
    is_failing: bool = False

    @property
    def in_flight(self) -> int | None:
        """Returns how many messages are in flight; None where it told nothing but that it holds the queue."""
        return None if self.next_offset is None and not self.in_flight_count else self.in_flight_count

    def as_row(self) -> list[Any]:
        return [*self.queue, self.next_offset, self.since_s, self.in_flight_count, self.is_failing]


def read(rows: Iterable[Sequence[Any]]) -> dict[MessageQueue, HeldQueue]:
    """Returns by queue what `as_row` wrote."""
    held = (HeldQueue(MessageQueue(*row[:3]), *row[3:]) for row in rows)
    return {one.queue: one for one in held}


def in_flight_sum(held: Iterable[HeldQueue]) -> int | None:
    """Returns how many messages are in flight on the queues of which that was told; None where it was of none."""
    told = [one.in_flight for one in held if one.in_flight is not None]
    return sum(told) if told else None


def renewed(known: Mapping[MessageQueue, HeldQueue], told: Iterable[HeldQueue]) -> list[HeldQueue]:
    """Returns what was told now; a queue whose next offset is what it was keeps the moment since when it is."""
    return [
        one._replace(since_s=before.since_s)
        if (before := known.get(one.queue)) is not None and before.next_offset == one.next_offset
        else one
        for one in told
    ]
