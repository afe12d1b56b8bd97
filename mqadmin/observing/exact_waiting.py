"""Which next messages a cycle of polling reads, for their store time. Pure.

Apache's brokers do not tell since when the next message of a group has been waiting; its own store time does. It is
read as tools read, without joining the group: one request for a queue, for groups that somebody looks at or that are in
trouble. What was read of an offset holds as long as that is committed, so a group that stands costs nothing more. What
the broker refused there, or nobody can decode, is not asked for again either, as far as that is remembered.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from mqadmin.observing.gateway import BrokerTables, QueuePlace
from mqadmin.observing.turns import Urgent
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicOffset

# Of the budget of a cycle: six groups with eight queues each, of which every offset has moved since.
READS_PER_CYCLE_MAX = 48
# Messages without a store time that are remembered of a cluster, the latest: four cycles in which none could be read.
UNREADABLE_MAX = 4 * READS_PER_CYCLE_MAX


class NextMessage(NamedTuple):
    """What a group consumes next of a queue, by what it has committed."""

    group: str
    queue: MessageQueue
    committed_offset: int


class Unreadable(NamedTuple):
    """Where a message is, or should be, of which the broker gave no store time."""

    queue: MessageQueue
    queue_offset: int


def readable(
    next_messages: Mapping[NextMessage, QueuePlace], unreadable: Collection[Unreadable]
) -> dict[NextMessage, QueuePlace]:
    """Returns the next messages without those that are known to have no store time."""
    known = frozenset(unreadable)
    return {
        one: place for one, place in next_messages.items() if Unreadable(one.queue, place.queue_offset) not in known
    }


def remembered(before: Iterable[Unreadable], further: Iterable[Unreadable]) -> tuple[Unreadable, ...]:
    """Returns what to remember: the latest, UNREADABLE_MAX at most."""
    return tuple(dict.fromkeys((*before, *further)))[-UNREADABLE_MAX:]


def to_read(
    next_messages: Iterable[NextMessage], urgent: Urgent, known: Collection[NextMessage], count: int
) -> list[NextMessage]:
    """Returns the next messages to read, `count` at most, the most urgent first; `known`: whose store time is known.

    Of the groups in trouble those of which nothing is known come before those that were read already and have moved
    since, so that these do not take all turns.
    """
    read = {one.group for one in known}
    places = {
        name: (name in read and number >= urgent.looked_at_count, number) for number, name in enumerate(urgent.groups)
    }
    wanted = [one for one in next_messages if one.group in places and one not in known]
    return sorted(wanted, key=lambda one: (*places[one.group], one.queue))[:count]


def waiting_messages(
    masters: Mapping[str, str],
    tables: Mapping[str, BrokerTables],
    ends: Mapping[MessageQueue, TopicOffset],
    groups: Container[str],
) -> Iterator[tuple[NextMessage, QueuePlace]]:
    """Yields the next messages of these groups on queues that were asked for their ends, and where each is read.

    `masters`: address → name; `tables`: by address. What lies before the first message of a queue was removed.
    """
    for address, table in tables.items():
        for (topic, group), queues in table.committed.items():
            if group not in groups:
                continue
            for queue_id, committed_offset in queues.items():
                queue = MessageQueue(topic, masters[address], queue_id)
                end = ends.get(queue)
                if end is not None and committed_offset < end.max_offset:
                    place = QueuePlace(address, topic, queue_id, max(committed_offset, end.min_offset))
                    yield NextMessage(group, queue, committed_offset), place
