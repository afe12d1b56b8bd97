"""Why offsets are committed in two rounds.

Apache's broker (`ConsumerOffsetManager.commitOffset`, 4.9 and 5.4) makes the table of a topic and group when the first
offset of these is committed. It looks for the table and then puts a new one, so of two first commits that it works on
at the same time it loses one, though it answers both with success.
"""

from __future__ import annotations

from collections.abc import Iterable

from remoting.wire.bodies.message_queue import MessageQueue


def commit_rounds(queues: Iterable[MessageQueue]) -> tuple[list[MessageQueue], list[MessageQueue]]:
    """Returns one queue of each topic and broker, to be committed and answered first; then the others."""
    first: dict[tuple[str, str], MessageQueue] = {}
    others = []
    for queue in queues:
        if first.setdefault((queue.broker_name, queue.topic), queue) is not queue:
            others.append(queue)
    return list(first.values()), others
