"""Messages for those who read them without consuming: no group joins, nothing is committed.

Brokers are asked in the name of the group that each of them keeps for tools, so no group comes into being either.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from mqadmin.observing.gateway.failures import Failures
from mqadmin.observing.gateway.fan_out import fan_out
from remoting.client.admin import Admin
from remoting.client.errors import BrokerRefused
from remoting.wire.limits import PULL_MESSAGES_MAX
from remoting.wire.stored_message import StoredMessage

# Of one queue in one reading: what is held in memory until it is written.
READ_MESSAGES_MAX = 1024
READ_BYTES_MAX = 8 * 1024 * 1024


class QueuePlace(NamedTuple):
    """Where to read a queue: from a queue offset on."""

    address: str
    topic: str
    queue_id: int
    queue_offset: int


@dataclass(frozen=True, slots=True)
class QueueReading:
    """Messages in order, and the queue offset to go on at. `refusal`: why the broker does not let it be read."""

    messages: tuple[StoredMessage, ...]
    next_offset: int
    end_offset: int
    refusal: str = ""


class MessageRequests:
    """Questions about messages."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def read(
        self, places: Collection[QueuePlace], failures: Failures, *, count: int = READ_MESSAGES_MAX
    ) -> dict[QueuePlace, QueueReading]:
        """Returns what each queue holds from the place on, about `count` messages and READ_BYTES_MAX at most."""

        async def read(place: QueuePlace) -> QueueReading:
            return await self._read(place, count)

        return await fan_out(dict.fromkeys(places, read), lambda place: place.address, failures)

    async def _read(self, place: QueuePlace, count: int) -> QueueReading:
        found: list[StoredMessage] = []
        offset, end, read_bytes = place.queue_offset, place.queue_offset, 0
        while len(found) < count and read_bytes < READ_BYTES_MAX:
            wanted = min(count - len(found), PULL_MESSAGES_MAX)
            try:
                page = await self._admin.messages.pull(place.address, place.topic, place.queue_id, offset, wanted)
            except BrokerRefused as error:
                return QueueReading(tuple(found), offset, end, str(error))
            found += page.messages
            read_bytes += sum(message.total_bytes for message in page.messages)
            end, is_stuck = page.max_offset, page.next_offset == offset
            offset = page.next_offset
            if is_stuck or offset >= end:
                break
        return QueueReading(tuple(found), offset, end)
