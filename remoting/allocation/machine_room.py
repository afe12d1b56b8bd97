"""The queues of brokers in chosen machine rooms, shared evenly (Java `AllocateMessageQueueByMachineRoom`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remoting.wire.bodies.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class MachineRoom:
    """`rooms`: a broker is in a room when its name is "room@broker". Queues of other rooms are read by nobody."""

    rooms: frozenset[str]

    name = "MACHINE_ROOM"

    def __init__(self, rooms: Iterable[str]) -> None:
        object.__setattr__(self, "rooms", frozenset(rooms))

    def __call__(self, queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> list[MessageQueue]:
        """Returns the queues of `me`. Both lists are sorted, `me` is a member.

        8 queues, 3 members: 0 1 6 / 2 3 7 / 4 5.
        """
        kept = [queue for queue in queues if self._has(queue.broker_name)]
        each, rest = divmod(len(kept), len(members))
        index = members.index(me)
        last = each * len(members) + index
        return kept[each * index : each * (index + 1)] + (kept[last : last + 1] if index < rest else [])

    def _has(self, broker_name: str) -> bool:
        # Java's split drops empty parts at the end: "room@" is no room, "@broker" is the room "".
        parts = broker_name.rstrip("@").split("@")
        return len(parts) == 2 and parts[0] in self.rooms
