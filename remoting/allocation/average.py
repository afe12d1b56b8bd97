"""Consecutive runs of queues, the first members getting one more (Java `AllocateMessageQueueAveragely`)."""

from __future__ import annotations

from collections.abc import Sequence

from remoting.wire.bodies.message_queue import MessageQueue


def average(queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> list[MessageQueue]:
    """Returns the queues of `me`. Both lists are sorted, `me` is a member.

    8 queues, 3 members: 0 1 2 / 3 4 5 / 6 7. With more members than queues the last ones get none.
    """
    index = members.index(me)
    each, rest = divmod(len(queues), len(members))
    start = index * each + min(index, rest)
    return list(queues[start : start + each + (1 if index < rest else 0)])
