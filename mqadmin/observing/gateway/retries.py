"""Retries, where brokers keep them: until their time in delay queues, then in the retry topic of their group.

Read as `messages.py` reads: no group joins, nothing is committed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from mqadmin.observing.gateway.failures import Failures
from mqadmin.observing.gateway.fan_out import fan_out
from mqadmin.observing.gateway.messages import MessageRequests, QueuePlace, QueueReading
from remoting.client.admin import Admin
from remoting.client.admin.messages import QUEUE_ENTRIES_MAX
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.consume_stats import QueueProgress
from remoting.wire.codes import ResponseCode
from remoting.wire.names import SCHEDULE_TOPIC, retry_topic
from remoting.wire.stored_message import StoredMessage

# Of one retry queue, of what the group has not consumed: more than a person looks at.
IN_QUEUE_MAX = 64
# What Apache's brokers, and ours, tell of each delay level: "next offset,end".
_LEVEL_FIGURE = "scheduleMessageOffset_"


@dataclass(frozen=True, slots=True)
class DelayReading:
    """Messages of a delay queue, and by queue offset when each is due, in ms, where the broker tells it."""

    queue: QueueReading
    due_ms: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RetryQueue:
    """What a group has not consumed of a retry queue: from `committed_offset` to `end_offset`, IN_QUEUE_MAX read.

    `pulled_offset`: up to where members have been given messages; None where the broker does not tell.
    """

    committed_offset: int
    pulled_offset: int | None
    end_offset: int
    messages: tuple[StoredMessage, ...]

    @property
    def is_whole(self) -> bool:
        """Tells whether all of them were read."""
        last = self.messages[-1].queue_offset + 1 if self.messages else self.committed_offset
        return last >= self.end_offset


@dataclass(frozen=True, slots=True)
class RetriesOnBroker:
    """`delivered`: delay level → queue offset of the next message that it hands over; levels that have handed over none
    may lack."""

    queues: tuple[RetryQueue, ...]
    delivered: Mapping[int, int]


class RetryRequests:
    """Questions about retries."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._messages = MessageRequests(admin)

    async def read(self, places: Collection[QueuePlace], failures: Failures) -> dict[QueuePlace, DelayReading]:
        """Returns what each delay queue holds from the place on, bounded as any reading is."""
        readings = await self._messages.read(places, failures)

        async def dues(place: QueuePlace) -> dict[int, int]:
            return await self._dues(place, readings[place])

        wanted = [place for place, reading in readings.items() if reading.messages and place.topic == SCHEDULE_TOPIC]
        # A broker that tells no due times is still read.
        told = await fan_out(dict.fromkeys(wanted, dues), lambda place: place.address, Failures())
        return {place: DelayReading(reading, told.get(place, {})) for place, reading in readings.items()}

    async def _dues(self, place: QueuePlace, reading: QueueReading) -> dict[int, int]:
        """A delay level's queue has due times in its entries, where others have hashes of tags."""
        offset, end = reading.messages[0].queue_offset, reading.messages[-1].queue_offset + 1
        found: dict[int, int] = {}
        while offset < end:
            count = min(end - offset, QUEUE_ENTRIES_MAX)
            page = await self._admin.messages.queue_entries(place.address, place.topic, place.queue_id, offset, count)
            if not page.queue_data:
                break
            found.update((offset + place_in, entry.tags_code) for place_in, entry in enumerate(page.queue_data))
            offset += len(page.queue_data)
        return found

    async def of_group(
        self, addresses: Collection[str], group: str, failures: Failures, *, timeout_s: float
    ) -> dict[str, RetriesOnBroker]:
        """Returns, by address, where the retries of a group stand: a few requests to each broker."""

        async def standing(address: str) -> RetriesOnBroker:
            return RetriesOnBroker(await self._queues(address, group), await self._delivered(address))

        return await fan_out(dict.fromkeys(addresses, standing), str, failures, timeout_s=timeout_s)

    async def _delivered(self, address: str) -> dict[int, int]:
        figures = await self._admin.brokers.runtime_info(address)
        levels = {
            name.removeprefix(_LEVEL_FIGURE): text.partition(",")[0]
            for name, text in figures.items()
            if name.startswith(_LEVEL_FIGURE)
        }
        return {int(level): int(text) for level, text in levels.items() if level.isdigit() and text.isdigit()}

    async def _queues(self, address: str, group: str) -> tuple[RetryQueue, ...]:
        topic = retry_topic(group)
        try:
            ends = await self._admin.topics.stats(address, topic)
        except BrokerRefused as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return ()
            raise
        progress = await self._progress(address, group, topic)
        found = []
        for queue, offsets in sorted(ends.items()):
            told = progress.get(queue.queue_id)
            committed = max(told.consumer_offset, offsets.min_offset) if told is not None else offsets.min_offset
            place = QueuePlace(address, topic, queue.queue_id, committed)
            messages: tuple[StoredMessage, ...] = ()
            if committed < offsets.max_offset:
                reading = (await self._messages.read([place], Failures(), count=IN_QUEUE_MAX)).get(place)
                messages = reading.messages if reading is not None else ()
            pulled = told.pull_offset if told is not None else None
            found.append(RetryQueue(committed, pulled, offsets.max_offset, messages))
        return tuple(found)

    async def _progress(self, address: str, group: str, topic: str) -> dict[int, QueueProgress]:
        """Returns by queue id; nothing where the group has committed nothing of the topic, or is not known there."""
        try:
            stats = await self._admin.offsets.consume_stats(address, group, topic)
        except BrokerRefused:
            return {}
        return {queue.queue_id: told for queue, told in stats.queues.items()}
