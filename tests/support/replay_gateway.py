"""A broker of one topic without sockets, in virtual time, for the driver of replays: sends end as a script says."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import StrEnum
from functools import partial
from types import SimpleNamespace

import pytest

from mqadmin.observing.gateway import Failures, Fate, GatewayError, Master, QueuePlace, QueueReading, SendOutcome
from mqadmin.observing.gateway.sending import TargetQueue
from mqadmin.replays import driving, sending
from remoting.client.admin.sending import StoredAt
from remoting.client.send_result import SendStatus
from remoting.wire.properties import Property, encode_properties
from remoting.wire.stored_message import StoredMessage
from tests.support.virtual_time import VirtualLoop, VirtualTime

ADDRESS, BROKER = "broker:1", "broker-a"
QUEUES = 2
READ_MAX = 320
HOST = ("127.0.0.1", 1)


class Sent(StrEnum):
    """How a send ends. LOST_*: no answer comes, and the broker has it, or not, or stores it when it was looked for."""

    STORED = "stored"
    REFUSED = "refused"
    LATER = "later"
    AWAY = "away"
    LOST_THERE = "lost, there"
    LOST_NOT_THERE = "lost, not there"
    LOST_LATE = "lost, there late"


class Reads(StrEnum):
    """What comes of looking for a message."""

    ALL = "all"
    REFUSED = "refused"
    SILENT = "silent"
    REMOVED = "removed"


@dataclasses.dataclass
class ReplayBroker:
    """`script` says how the send of an entry ends, `send_s` how long it takes. `stored` has (entry, time) of each.
    `unread`: what has come, and is stored when it was looked for once.

    It is in place of the driver's gateway: `sending`, `messages` and `masters` are what the driver asks.
    """

    clock: VirtualTime
    script: Callable[[int], Sent] = lambda _: Sent.STORED
    send_s: Callable[[], float] = lambda: 0.002
    reads: Reads = Reads.ALL
    stored: list[tuple[int, float]] = dataclasses.field(default_factory=list)
    queues_held: defaultdict[tuple[str, int], list[StoredMessage]] = dataclasses.field(
        default_factory=lambda: defaultdict(list)
    )
    unread: list[Callable[[], StoredAt]] = dataclasses.field(default_factory=list)
    commit_log_offsets: Iterator[int] = dataclasses.field(default_factory=itertools.count)

    @property
    def sending(self) -> ReplayBroker:
        return self

    @property
    def messages(self) -> ReplayBroker:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Has nothing to close."""

    def copies(self) -> Counter[int]:
        """Returns how often each entry is stored."""
        return Counter(entry for entry, _ in self.stored)

    async def masters(self) -> list[Master]:
        if self.reads == Reads.SILENT:
            raise GatewayError("nobody answers")
        return [Master(BROKER, ADDRESS, "there")]

    async def queues(self, topic: str, failures: Failures) -> list[TargetQueue]:
        return [TargetQueue(ADDRESS, BROKER, queue_id) for queue_id in range(QUEUES)]

    async def ends(self, queues: Collection[TargetQueue], topic: str, failures: Failures) -> dict[TargetQueue, int]:
        return {queue: len(self.queues_held[topic, queue.queue_id]) for queue in queues}

    async def send(self, queue: TargetQueue, topic: str, body: bytes, properties: dict[str, str]) -> SendOutcome:
        await asyncio.sleep(self.send_s())
        entry = int(properties[Property.REPLAY_ENTRY])
        match self.script(entry):
            case Sent.STORED:
                return SendOutcome(Fate.STORED, "", self._store(entry, queue, topic, body, properties))
            case Sent.LOST_THERE:
                self._store(entry, queue, topic, body, properties)
                return SendOutcome(Fate.LOST, "no answer came")
            case Sent.LOST_NOT_THERE:
                return SendOutcome(Fate.LOST, "no answer came")
            case Sent.LOST_LATE:
                self.unread.append(partial(self._store, entry, queue, topic, body, properties))
                return SendOutcome(Fate.LOST, "no answer came")
            case Sent.REFUSED:
                return SendOutcome(Fate.REFUSED, "no permission")
            case Sent.LATER:
                return SendOutcome(Fate.NOT_SENT, "busy")
            case Sent.AWAY:
                return SendOutcome(Fate.NOT_SENT, "not reached", is_away=True)

    async def read(
        self, places: Collection[QueuePlace], failures: Failures, *, count: int = READ_MAX
    ) -> dict[QueuePlace, QueueReading]:
        return {place: self._read(place, count) for place in places}

    def _read(self, place: QueuePlace, count: int) -> QueueReading:
        held = self.queues_held[place.topic, place.queue_id]
        if self.reads == Reads.REFUSED:
            return QueueReading((), place.queue_offset, len(held), "no permission")
        if self.reads == Reads.REMOVED:
            return QueueReading((), len(held), len(held), begin_offset=len(held))
        found = tuple(held[place.queue_offset : place.queue_offset + count])
        # One beyond the end goes on at the end, as a broker's answer says.
        return QueueReading(found, min(place.queue_offset + count, len(held)), len(held))

    def make_anew(self, topic: str, counts: Collection[int]) -> None:
        """Deletes the topic, and makes it again, with so many messages of others in each queue."""
        for queue_id, count in enumerate(counts):
            self.queues_held[topic, queue_id].clear()
            self.grow(topic, queue_id, count)

    def grow(self, topic: str, queue_id: int, count: int) -> None:
        """Stores messages of others."""
        for _ in range(count):
            self._keep(TargetQueue(ADDRESS, BROKER, queue_id), topic, b"another's", {})

    async def by_key(self, address: str, topics: Iterable[str], key: str, failures: Failures) -> list[StoredMessage]:
        unread, self.unread = self.unread, []
        for store in unread:
            store()
        return []

    def _store(self, entry: int, queue: TargetQueue, topic: str, body: bytes, properties: dict[str, str]) -> StoredAt:
        message = self._keep(queue, topic, body, properties)
        self.stored.append((entry, self.clock.now_s))
        return StoredAt(message.offset_message_id, queue.queue_id, message.queue_offset, SendStatus.SEND_OK)

    def _keep(self, queue: TargetQueue, topic: str, body: bytes, properties: dict[str, str]) -> StoredMessage:
        held = self.queues_held[topic, queue.queue_id]
        message = StoredMessage(
            topic=topic,
            queue_id=queue.queue_id,
            queue_offset=len(held),
            commit_log_offset=next(self.commit_log_offsets),
            store_host=HOST,
            body=body,
            properties_text=encode_properties(properties),
        )
        held.append(message)
        return message


def in_place(monkeypatch: pytest.MonkeyPatch, broker: ReplayBroker) -> None:
    """Gives the driver this broker, and the time of its clock."""

    def runner() -> asyncio.Runner:
        return asyncio.Runner(loop_factory=lambda: VirtualLoop(broker.clock))

    virtual = SimpleNamespace(monotonic=lambda: broker.clock.now_s)
    monkeypatch.setattr(driving, "asyncio", SimpleNamespace(Runner=runner, sleep=asyncio.sleep))
    monkeypatch.setattr(driving, "Gateway", lambda _namesrv: broker)
    monkeypatch.setattr(driving, "time", virtual)
    monkeypatch.setattr(sending, "time", virtual)
