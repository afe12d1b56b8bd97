"""A replay's ledger beside what its topic holds and what a consumer of it saw, message by message."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from remoting.wire.properties import Property
from tests.support.reading import stored_messages

WITHIN_S = 120.0


class Place(NamedTuple):
    """Where a message of a replay lies, with its body."""

    queue_id: int
    queue_offset: int
    body: bytes


# By entry of the ledger: each place once, however often it was consumed.
Places = Mapping[int, set[Place]]


def stored_places(address: str, topic: str, queue_count: int) -> Places:
    """Returns what the broker holds."""
    found: defaultdict[int, set[Place]] = defaultdict(set)
    for queue_id in range(queue_count):
        offset = 0
        while page := stored_messages(address, topic, queue_id, offset):
            offset = page[-1].queue_offset + 1
            for message in page:
                entry = int(message.properties[Property.REPLAY_ENTRY])
                found[entry].add(Place(queue_id, message.queue_offset, message.body))
    return found


class Onlooker:
    """A member of a group of its own that consumes the topic from its first message on, in a thread.

    `deliveries` counts what it was given, which after a broken connection is more than there is.
    """

    def __init__(self, namesrv: str, topic: str, group: str = "onlookers") -> None:
        self.seen: defaultdict[int, set[Place]] = defaultdict(set)
        self.deliveries = 0
        listener = Listener(topic, self._listen, "*", is_async=True)
        self._member = PushConsumer(ConsumerConfig(namesrv, group, start=start_rule("first")), {topic: listener})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Onlooker:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._member.start(), self._loop).result(WITHIN_S)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._member.stop(), self._loop).result(WITHIN_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WITHIN_S)
        self._loop.close()

    @property
    def seen_count(self) -> int:
        return sum(len(places) for places in list(self.seen.values()))

    async def _listen(self, message: Message) -> None:
        assert message.queue is not None
        self.deliveries += 1
        place = Place(message.queue.queue_id, message.queue_offset, message.body)
        self.seen[int(message.properties[Property.REPLAY_ENTRY])].add(place)


class Agreement(NamedTuple):
    """How a replay went: `doubled_count` messages lie more than once, all of them unknown to the ledger."""

    sent_count: int
    unknown_count: int
    doubled_count: int


def agreement(told: Mapping[str, Any], places: Places) -> Agreement:
    """Holds each entry of a ledger, as `replay_process` prints it, to the places of its message.

    Sent: once, where the ledger says, with its body. Unknown: any number of times. All others: never.
    """
    states = Counter(entry["state"] for entry in told["entries"])
    assert sum(states.values()) == told["total_count"]
    assert (states["sent"], states["unknown"]) == (told["sent_count"], told["unknown_count"])
    entries = {entry["id"]: entry for entry in told["entries"]}
    assert places.keys() <= entries.keys()
    doubled = 0
    for key, entry in entries.items():
        there = places.get(key, set())
        if entry["state"] == "sent":
            assert there == {Place(entry["queue_id"], entry["queue_offset"], entry["message_id"].encode())}, entry
        elif entry["state"] == "unknown":
            doubled += len(there) > 1
        else:
            assert not there, entry
    return Agreement(states["sent"], states["unknown"], doubled)
