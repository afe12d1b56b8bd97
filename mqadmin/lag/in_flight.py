"""Whether queues stand because a listener takes long: their members hold messages, and have not had them for too long.

Pure. A committed offset moves when the first message is finished, so a queue whose listener needs three minutes for a
message stands three minutes, and all is well. That is so as long as the member that holds the queue says that it has
messages in flight there, and the queue has stood for less than its consume time-out: then RocketMQ's own clients send
the message back. What comes again and again in order is not long, it fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from mqadmin.clusters.held_queues import HeldQueue
from remoting.wire.bodies.message_queue import MessageQueue

# A queue that stands for so long is looked at (`verdicts.py` calls it STALLED then).
STANDS_S = 60
# What a member said is believed for so long: a turn of asking (docs/SUBSCRIPTIONS.md), and half a minute.
BELIEVED_FOR = timedelta(seconds=150)


class StandingQueue(NamedTuple):
    """A queue with messages waiting whose committed offset has been what it is since then."""

    queue: MessageQueue
    since: datetime


class Held(NamedTuple):
    """What a member said of a queue, when, and how long one call of its listener may take (None: not told)."""

    of: HeldQueue
    told_at: datetime
    consume_timeout_s: int | None


@dataclass(frozen=True, slots=True)
class InFlight:
    """All queues that stand do so because of a listener. `until`: when that is true no more, if nothing is heard.

    `stood_s` of the queue that has stood longest, `timeout_s` the shortest time-out of their members.
    """

    stood_s: int
    timeout_s: int
    message_count: int
    queue_count: int
    until: datetime


def in_flight(
    standing: Iterable[StandingQueue], held: Mapping[MessageQueue, Held], now: datetime, stands_s: float = STANDS_S
) -> InFlight | None:
    """Returns what is in flight on the queues that stand; None when none does, or one of them for another reason."""
    longest = [one for one in standing if (now - one.since).total_seconds() >= stands_s]
    found: list[tuple[StandingQueue, Held, int]] = []
    for one in longest:
        said = held.get(one.queue)
        if said is None or said.consume_timeout_s is None or not _explains(said, one, said.consume_timeout_s, now):
            return None
        found.append((one, said, said.consume_timeout_s))
    if not found:
        return None
    return InFlight(
        stood_s=int(max((now - one.since).total_seconds() for one, _, _ in found)),
        timeout_s=min(timeout_s for _, _, timeout_s in found),
        message_count=sum(said.of.in_flight_count for _, said, _ in found),
        queue_count=len(found),
        until=min(_until(one, said, timeout_s) for one, said, timeout_s in found),
    )


def latest(told: Sequence[Held]) -> dict[MessageQueue, Held]:
    """Returns by queue what was told last: while queues move, two members may say that they hold one."""
    return {one.of.queue: one for one in sorted(told, key=lambda one: one.told_at)}


def _explains(said: Held, one: StandingQueue, timeout_s: int, now: datetime) -> bool:
    is_heard = one.since <= said.told_at and now < _until(one, said, timeout_s)
    return is_heard and said.of.in_flight_count > 0 and not said.of.is_failing


def _until(one: StandingQueue, said: Held, timeout_s: int) -> datetime:
    return min(one.since + timedelta(seconds=timeout_s), said.told_at + BELIEVED_FOR)
