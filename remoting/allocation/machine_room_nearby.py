"""Queues go to members in the same machine room, those of a room without members to all.

Java's `AllocateMachineRoomNearby`: each such room is shared by itself, so the first members get more of several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from remoting.wire.bodies.message_queue import MessageQueue


class Inner(Protocol):
    """The strategy that shares the queues of a room."""

    def __call__(
        self, queues: Sequence[MessageQueue], members: Sequence[str], me: str, /
    ) -> Iterable[MessageQueue]: ...


@dataclass(frozen=True, slots=True)
class MachineRoomNearby:
    """`room_of_queue` and `room_of_member` (which takes a client id) return the name of a room, never an empty one."""

    inner: Inner
    room_of_queue: Callable[[MessageQueue], str]
    room_of_member: Callable[[str], str]

    @property
    def name(self) -> str:
        inner = str(getattr(self.inner, "name", None) or getattr(self.inner, "__name__", type(self.inner).__name__))
        return f"MACHINE_ROOM_NEARBY-{_JAVA_NAMES.get(inner, inner)}"

    def __call__(self, queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> list[MessageQueue]:
        """Returns the queues of `me`. Raises ValueError for a queue or member whose room is not known."""
        queues_by_room: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            queues_by_room.setdefault(_room(self.room_of_queue(queue), queue), []).append(queue)
        members_by_room: dict[str, list[str]] = {}
        for member in members:
            members_by_room.setdefault(_room(self.room_of_member(member), member), []).append(member)
        mine = _room(self.room_of_member(me), me)
        allocated: list[MessageQueue] = []
        if mine in queues_by_room:
            allocated += self.inner(queues_by_room[mine], members_by_room[mine], me)
        for room in sorted(queues_by_room):
            if room not in members_by_room:
                allocated += self.inner(queues_by_room[room], members, me)
        return allocated


_JAVA_NAMES = {"average": "AVG", "circle": "AVG_BY_CIRCLE"}


def _room(name: object, what: object) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"the machine room of {what} is {name!r}; its name is needed")
    return name
