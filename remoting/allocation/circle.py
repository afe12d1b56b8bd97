"""Each member gets every n-th queue of n members (Java `AllocateMessageQueueAveragelyByCircle`)."""

from __future__ import annotations

from collections.abc import Sequence

from remoting.wire.bodies.message_queue import MessageQueue


def circle(queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> list[MessageQueue]:
    """Returns the queues of `me`. Both lists are sorted, `me` is a member.

    8 queues, 3 members: 0 3 6 / 1 4 7 / 2 5.
    """
    return list(queues[members.index(me) :: len(members)])
