"""A broker of one topic without sockets, in virtual time, for the driver of replays: sends end as a script says."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
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
HOST = ("127.0.0.1", 1)


class Sent(StrEnum):
    """How a send ends. LOST_*: no answer comes, and the broker has it or not."""

    STORED = "stored"
    REFUSED = "refused"
    LATER = "later"
    AWAY = "away"
    LOST_THERE = "lost, there"
    LOST_NOT_THERE = "lost, not there"


class Reads(StrEnum):
    """What comes of looking for a message."""

    ALL = "all"
    REFUSED = "refused"
    SILENT = "silent"


@dataclasses.dataclass
class ReplayBroker:
    """`script` says how the send of an entry ends, `send_s` how long it takes. `stored` has (entry, time) of each.

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
            case Sent.REFUSED:
                return SendOutcome(Fate.REFUSED, "no permission")
            case Sent.LATER:
                return SendOutcome(Fate.NOT_SENT, "busy")
            case Sent.AWAY:
                return SendOutcome(Fate.NOT_SENT, "not reached", is_away=True)

    async def read(self, places: Collection[QueuePlace], failures: Failures) -> dict[QueuePlace, QueueReading]:
        (place,) = places
        held = self.queues_held[place.topic, place.queue_id]
        if self.reads == Reads.REFUSED:
            return {place: QueueReading((), place.queue_offset, len(held), "no permission")}
        return {place: QueueReading(tuple(held[place.queue_offset :]), len(held), len(held))}

    async def by_key(self, address: str, topics: Iterable[str], key: str, failures: Failures) -> list[StoredMessage]:
        return []

    def _store(self, entry: int, queue: TargetQueue, topic: str, body: bytes, properties: dict[str, str]) -> StoredAt:
        held = self.queues_held[topic, queue.queue_id]
        message = StoredMessage(
            topic=topic,
            queue_id=queue.queue_id,
            queue_offset=len(held),
            commit_log_offset=len(self.stored),
            store_host=HOST,
            body=body,
            properties_text=encode_properties(properties),
        )
        held.append(message)
        self.stored.append((entry, self.clock.now_s))
        return StoredAt(message.offset_message_id, queue.queue_id, message.queue_offset, SendStatus.SEND_OK)


def in_place(monkeypatch: pytest.MonkeyPatch, broker: ReplayBroker) -> None:
    """Gives the driver this broker, and the time of its clock."""

    def runner() -> asyncio.Runner:
        return asyncio.Runner(loop_factory=lambda: VirtualLoop(broker.clock))

    virtual = SimpleNamespace(monotonic=lambda: broker.clock.now_s)
    monkeypatch.setattr(driving, "asyncio", SimpleNamespace(Runner=runner))
    monkeypatch.setattr(driving, "Gateway", lambda _namesrv: broker)
    monkeypatch.setattr(driving, "time", virtual)
    monkeypatch.setattr(sending, "time", virtual)
