"""Each queue goes to the next member on a ring of hashes (Java `AllocateMessageQueueConsistentHash`).

A member that joins or leaves moves few queues of the others; with few queues the shares are uneven: of 8 queues and 4
members two may get none.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from remoting.wire.bodies.message_queue import MessageQueue

VIRTUAL_NODES = 10

Hash = Callable[[str], int]


def md5_hash(text: str) -> int:
    """Returns the first four bytes of the MD5 digest of the UTF-8 text, big-endian and unsigned."""
    digest = hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


@dataclass(frozen=True, slots=True)
class ConsistentHash:
    """Each member is on the ring at `virtual_nodes` places. `hash_of` takes texts, as Java's `HashFunction`."""

    virtual_nodes: int = VIRTUAL_NODES
    hash_of: Hash = md5_hash

    name = "CONSISTENT_HASH"

    def __post_init__(self) -> None:
        """Raises ValueError for a negative number of places; with 0 nobody gets a queue, as in Java."""
        if self.virtual_nodes < 0:
            raise ValueError(f"{self.virtual_nodes} virtual nodes: 0 or more are needed")

    def __call__(self, queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> list[MessageQueue]:
        # Where two places coincide the later one counts.
        ring = {
            self.hash_of(f"{member}-{number}"): member for member in members for number in range(self.virtual_nodes)
        }
        places = sorted(ring)
        if not places:
            return []
        return [queue for queue in queues if ring[self._place(places, queue)] == me]

    def _place(self, places: list[int], queue: MessageQueue) -> int:
        index = bisect.bisect_left(places, self.hash_of(str(queue)))
        return places[index % len(places)]
