"""Which queues moved between members of a group, by what they said before and what they say now. Pure.

Members are not asked all at once, so a queue may be said to be held by two, or by nobody, for a while: a move is told
once, when its new holder says so, or when its old one says so and no other has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from mqadmin.observing.signals import QueueMove
from remoting.wire.bodies.message_queue import MessageQueue

Holding = AbstractSet[MessageQueue]


def moves(before: Mapping[str, Holding], told: Mapping[str, Holding]) -> list[QueueMove]:
    """Returns the moves, by queue. `before`: by client id what each held, also who left meanwhile.

    >>> queue = MessageQueue("orders", "a", 0)
    >>> moves({"one": {queue}, "two": set()}, {"one": set(), "two": {queue}})
    [QueueMove(queue=MessageQueue(topic='orders', broker_name='a', queue_id=0), from_client='one', to_client='two')]
    """
    return sorted((*_gained(before, told), *_lost(before, told)), key=lambda move: move.queue)


def _gained(before: Mapping[str, Holding], told: Mapping[str, Holding]) -> Iterator[QueueMove]:
    for client_id, holds in told.items():
        for queue in holds - before.get(client_id, frozenset()):
            former = _holder(queue, {one: held for one, held in before.items() if one != client_id}, without=told)
            # The first word of a member that is there for longer than we ask says nothing of a move.
            if former or client_id in before:
                yield QueueMove(queue, former, client_id)


def _lost(before: Mapping[str, Holding], told: Mapping[str, Holding]) -> Iterator[QueueMove]:
    now = {**before, **told}
    for client_id, holds in told.items():
        for queue in before.get(client_id, frozenset()) - holds:
            if not any(queue in held for other, held in now.items() if other != client_id):
                yield QueueMove(queue, client_id, "")


def _holder(queue: MessageQueue, before: Mapping[str, Holding], without: Mapping[str, Holding]) -> str:
    """Returns who held the queue and does not say now that it still does; "" for nobody."""
    return next((one for one, held in before.items() if queue in held and queue not in without.get(one, ())), "")
