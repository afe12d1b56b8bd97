"""Which queues moved between members of a group, by what they said before and what they say now. Pure.

Members are not asked all at once, so a queue may be said to be held by two, or by nobody, for a while. A move is told
once: when its new holder says so and its old one does not say that it still has the queue; when the old one has let it
go, or left, which another had taken before; or, where no other has, when its old one says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from mqadmin.observing.signals import QueueMove
from remoting.wire.bodies.message_queue import MessageQueue

Holding = AbstractSet[MessageQueue]


def moves(
    before: Mapping[str, Holding],
    told: Mapping[str, Holding],
    *,
    left: AbstractSet[str] = frozenset(),
    joined: AbstractSet[str] = frozenset(),
) -> list[QueueMove]:
    """Returns the moves, by queue. `before`: by client id what each held, also of those who `left` meanwhile.

    `joined`: who came lately, and so has taken since then what it holds by its first word.

    >>> queue = MessageQueue("orders", "a", 0)
    >>> moves({"one": {queue}, "two": set()}, {"one": set(), "two": {queue}})
    [QueueMove(queue=MessageQueue(topic='orders', broker_name='a', queue_id=0), from_client='one', to_client='two')]
    """
    found = (*_gained(before, told, joined), *_let_go(before, told, left))
    return sorted(found, key=lambda move: move.queue)


def _gained(
    before: Mapping[str, Holding], told: Mapping[str, Holding], joined: AbstractSet[str]
) -> Iterator[QueueMove]:
    for client_id, holds in told.items():
        for queue in holds - before.get(client_id, frozenset()):
            others = [one for one, held in before.items() if one != client_id and queue in held]
            former = next((one for one in others if queue not in told.get(one, ())), "")
            # The first word of a member that is there for longer than we ask says nothing of a move.
            if former or ((client_id in before or client_id in joined) and not others):
                yield QueueMove(queue, former, client_id)


def _let_go(before: Mapping[str, Holding], told: Mapping[str, Holding], left: AbstractSet[str]) -> Iterator[QueueMove]:
    now = {one: held for one, held in {**before, **told}.items() if one not in left}
    # Where it went is told by `_gained`.
    taken = {queue for one, holds in told.items() for queue in holds - before.get(one, frozenset())}
    for client_id, held in before.items():
        for queue in held - now.get(client_id, frozenset()) - taken:
            holder = next((one for one, holds in now.items() if queue in holds), "")
            if holder or client_id in told:
                yield QueueMove(queue, client_id, holder)
