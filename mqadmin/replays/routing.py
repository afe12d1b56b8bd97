"""To which queue the next message of a topic goes: what the name servers say, without brokers that are away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import count
from typing import NamedTuple

from mqadmin.observing.gateway import Failures, Gateway, GatewayError, QueuePlace, TargetQueue


class End(NamedTuple):
    """A queue offset below which nothing that is sent from now on can lie, and the broker's id of the message before.

    `before_id` is "" where that message is not known: by it, a topic that was made anew meanwhile is told.
    """

    queue_offset: int
    before_id: str = ""


class Routes:
    """Of one step of one replay."""

    def __init__(self) -> None:
        self.ends: dict[tuple[str, TargetQueue], End] = {}
        self.away: dict[str, str] = {}
        self.silent = ""
        self._queues: dict[str, list[TargetQueue]] = {}
        self._turns: defaultdict[str, count[int]] = defaultdict(count)

    async def learn(self, gateway: Gateway, topics: Iterable[str]) -> None:
        """Asks for the topics that are not known yet; a broker that does not answer is away."""
        for topic in topics:
            if not self._queues.get(topic):
                await self._learn(gateway, topic)

    async def _learn(self, gateway: Gateway, topic: str) -> None:
        failures = Failures()
        try:
            queues = await gateway.sending.queues(topic, failures)
        except GatewayError as error:
            self.silent = str(error)
            return
        if not queues:
            self.silent = "; ".join(failures.reasons.values())
            return
        unreached = Failures()
        ends = await gateway.sending.ends(queues, topic, unreached)
        before = await _ids_before(gateway, topic, ends)
        self.ends |= {(topic, queue): End(end, before.get(queue, "")) for queue, end in ends.items()}
        self.away |= unreached.reasons
        self._queues[topic] = queues

    def pick(self, topic: str, broker_name: str = "") -> TargetQueue | None:
        """Returns the next queue, of this broker where it has one; None where no broker can be reached."""
        there = [queue for queue in self._queues.get(topic, ()) if self._is_there(topic, queue)]
        preferred = [queue for queue in there if queue.broker_name == broker_name] or there
        return preferred[next(self._turns[topic]) % len(preferred)] if preferred else None

    def why_none(self, topic: str) -> str:
        """Returns why no queue can be picked; "" where no name server knows one that takes messages."""
        reasons = {self.away[one.address]: None for one in self._queues.get(topic, ()) if one.address in self.away}
        return "; ".join(reasons) or self.silent

    def note_stored(self, topic: str, queue: TargetQueue, queue_offset: int, offset_message_id: str) -> None:
        """What is sent after this message lies behind it."""
        known, stored = self.ends.get((topic, queue)), End(queue_offset + 1, offset_message_id)
        if known is None or known.queue_offset < stored.queue_offset:
            self.ends[topic, queue] = stored

    def note_away(self, addresses: Collection[tuple[str, str]]) -> None:
        self.away |= dict(addresses)

    def _is_there(self, topic: str, queue: TargetQueue) -> bool:
        return queue.address not in self.away and (topic, queue) in self.ends


async def _ids_before(gateway: Gateway, topic: str, ends: Mapping[TargetQueue, int]) -> dict[TargetQueue, str]:
    """Returns the broker's id of the last message of each queue that can be read."""
    places = {
        QueuePlace(queue.address, topic, queue.queue_id, end - 1): queue for queue, end in ends.items() if end > 0
    }
    readings = await gateway.messages.read(places, Failures(), count=1)
    return {
        places[place]: message.offset_message_id
        for place, reading in readings.items()
        for message in reading.messages
        if message.queue_offset == place.queue_offset
    }
