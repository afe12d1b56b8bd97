"""Messages for those who read them without consuming: no group joins, nothing is committed.

Brokers are asked in the name of the group that each of them keeps for tools, so no group comes into being either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from mqadmin.clusters.moments import moment_or_none
from mqadmin.observing.gateway.failures import Failures
from mqadmin.observing.gateway.fan_out import SAMPLE_TIMEOUT_S, fan_out
from remoting.client.admin import Admin
from remoting.client.errors import BrokerRefused
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import WireError
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
    """Messages in order, and the queue offset to go on at. `refusal`: why the broker does not let it be read.

    `begin_offset`: of the first message that the broker still had; what lay before was removed.
    """

    messages: tuple[StoredMessage, ...]
    next_offset: int
    end_offset: int
    refusal: str = ""
    begin_offset: int = 0


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

    async def store_times(
        self, places: Iterable[QueuePlace], failures: Failures, *, timeout_s: float = SAMPLE_TIMEOUT_S
    ) -> dict[QueuePlace, datetime | None]:
        """Returns when the message at each place was stored, by one request each.

        None for those that are not there, may not be read or cannot be decoded: as long as nothing changes there, they
        are to be asked for no more. Those lack for which no answer came, or that a busy broker put off.
        """
        calls = dict.fromkeys(places, self._stored_at)
        return await fan_out(calls, lambda place: place.address, failures, timeout_s=timeout_s)

    async def _stored_at(self, place: QueuePlace) -> datetime | None:
        try:
            page = await self._admin.messages.pull(place.address, place.topic, place.queue_id, place.queue_offset, 1)
        except BrokerRefused as error:
            if error.code == ResponseCode.SYSTEM_BUSY:
                raise
            return None
        except WireError:
            return None
        found = (one.store_timestamp_ms for one in page.messages if one.queue_offset == place.queue_offset)
        return moment_or_none(next(found, 0))

    async def _read(self, place: QueuePlace, count: int) -> QueueReading:
        found: list[StoredMessage] = []
        offset, end, begin, read_bytes = place.queue_offset, place.queue_offset, 0, 0
        while len(found) < count and read_bytes < READ_BYTES_MAX:
            wanted = min(count - len(found), PULL_MESSAGES_MAX)
            try:
                page = await self._admin.messages.pull(place.address, place.topic, place.queue_id, offset, wanted)
            except BrokerRefused as error:
                return QueueReading(tuple(found), offset, end, str(error), begin)
            found += page.messages
            read_bytes += sum(message.total_bytes for message in page.messages)
            begin, end, is_stuck = page.min_offset, page.max_offset, page.next_offset == offset
            offset = page.next_offset
            if is_stuck or offset >= end:
                break
        return QueueReading(tuple(found), offset, end, begin_offset=begin)
