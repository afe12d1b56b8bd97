"""Sends what was claimed: paced, few at once, each once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from mqadmin.deadletters.content import Content, ContentGone, read_content
from mqadmin.deadletters.models import DeadLetter
from mqadmin.observing.gateway import Fate, Gateway, GatewayError, SendOutcome, TargetQueue
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.outgoing import outgoing_properties
from mqadmin.replays.pacing import Pace
from mqadmin.replays.routing import Routes
from mqadmin.replays.states import Target

# Messages at once, with their bodies in memory: 4 MiB each at most.
IN_FLIGHT_MAX = 16


@dataclass(frozen=True, slots=True)
class Claimed:
    """An entry that was written to be sent, to this queue of this topic."""

    entry: ReplayEntry
    topic: str
    queue: TargetQueue


@dataclass(frozen=True, slots=True)
class Batch:
    """What was claimed together, and the contents that the database holds, by entry.

    `claimed_s` is monotonic, and stands still while the machine sleeps; `claimed_at` does not.
    """

    claimed: Sequence[Claimed]
    contents: Mapping[int, Content]
    claimed_s: float
    claimed_at: datetime

    @property
    def age_s(self) -> float:
        """Returns how long ago it was claimed: by the clock that says more, since the other may have stood still."""
        return max(time.monotonic() - self.claimed_s, (timezone.now() - self.claimed_at).total_seconds())


class Sender:
    """Of one step. `masters`: where dead letters are that the index has not kept, by broker name."""

    def __init__(
        self, gateway: Gateway, job: ReplayJob, routes: Routes, masters: Mapping[str, str], send_within_s: float
    ) -> None:
        self._gateway = gateway
        self._job = job
        self._routes = routes
        self._masters = masters
        self._send_within_s = send_within_s

    async def send(self, batch: Batch, pace: Pace) -> dict[int, SendOutcome]:
        """Returns the outcome of each entry by its primary key."""
        outcomes: dict[int, SendOutcome] = {}
        slots = asyncio.Semaphore(IN_FLIGHT_MAX)

        async def send(one: Claimed) -> None:
            try:
                outcomes[one.entry.pk] = await self._send(one, batch)
            finally:
                slots.release()

        async with asyncio.TaskGroup() as sends:
            for one in batch.claimed:
                if wait_s := pace.wait_s(time.monotonic()):
                    await asyncio.sleep(wait_s)
                await slots.acquire()
                sends.create_task(send(one))
        return outcomes

    async def _send(self, one: Claimed, batch: Batch) -> SendOutcome:
        if why := self._routes.away.get(one.queue.address):
            return SendOutcome(Fate.NOT_SENT, why, is_away=True)
        try:
            content = batch.contents.get(one.entry.pk) or await self._read(one.entry.dead_letter)
        except ContentGone as error:
            return SendOutcome(Fate.REFUSED, str(error))
        except GatewayError as error:
            return SendOutcome(Fate.NOT_SENT, str(error))
        properties = outgoing_properties(
            content.properties,
            Target(self._job.target),
            origin_topic=one.entry.origin_topic,
            token=self._job.token,
            entry_id=one.entry.pk,
            is_mended=content.is_mended,
        )
        if batch.age_s > self._send_within_s:
            return SendOutcome(Fate.NOT_SENT, "", is_away=True)
        outcome = await self._gateway.sending.send(one.queue, one.topic, content.body, properties)
        if outcome.is_away:
            self._routes.away[one.queue.address] = outcome.words
        if outcome.stored is not None:
            stored = outcome.stored
            self._routes.note_stored(one.topic, one.queue, stored.queue_offset, stored.offset_message_id)
        return outcome

    async def _read(self, dead: DeadLetter | None) -> Content:
        assert dead is not None, "what has no dead letter has its content in a file"
        address = self._masters.get(dead.broker_name)
        if address is None:
            raise GatewayError(f"broker {dead.broker_name} is not known any more")
        return await read_content(self._gateway, dead, address)
