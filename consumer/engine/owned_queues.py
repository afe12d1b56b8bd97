"""The queues that this member owns: taking one, giving one up, and what both mean for progress.

Callers: the rebalancer, and the pull loops through `moved`. Affects: process queues, pull loops, offset store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from consumer.engine.clock import Clock
from consumer.engine.flow_control import FlowControl, Limits
from consumer.engine.offset_store import OffsetStore
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.pull_loop import PullLoop
from consumer.engine.start_position import OffsetQuestions, StartRule, start_position
from remoting.wire.bodies.message_queue import MessageQueue

logger = logging.getLogger(__name__)

MakeLoop = Callable[[ProcessQueue, int], PullLoop]


class OwnedQueues:
    """`make_loop` makes the pull loop of a queue from its first offset."""

    def __init__(
        self,
        *,
        group: str,
        offsets: OffsetStore,
        brokers: OffsetQuestions,
        rule: StartRule,
        flow_control: FlowControl,
        clock: Clock,
        make_loop: MakeLoop,
    ) -> None:
        self._group = group
        self._offsets = offsets
        self._brokers = brokers
        self._rule = rule
        self._flow_control = flow_control
        self._clock = clock
        self._make_loop = make_loop
        self._loops: dict[MessageQueue, PullLoop] = {}
        self._limits = flow_control.limits(0)

    @property
    def queues(self) -> list[MessageQueue]:
        return list(self._loops)

    @property
    def process_queues(self) -> list[ProcessQueue]:
        return [loop.process_queue for loop in self._loops.values()]

    @property
    def limits(self) -> Limits:
        """What each of them may hold now."""
        return self._limits

    def of_topic(self, topic: str) -> Mapping[MessageQueue, ProcessQueue]:
        return {queue: loop.process_queue for queue, loop in self._loops.items() if queue.topic == topic}

    async def take(self, queue: MessageQueue) -> None:
        """Begins to pull `queue` where the group stands. Raises ClientError when that cannot be learnt."""
        stored = await self._offsets.load(queue)
        position = await start_position(queue, stored, self._rule, self._brokers)
        if queue in self._loops:
            return
        process_queue = ProcessQueue(queue, self._clock())
        logger.info("group %s takes %s at %d (%s)", self._group, process_queue.name, position.offset, position.because)
        # Known from now on: a member that stops before anything came must not leave the question open.
        self._offsets.advance(queue, position.offset)
        loop = self._make_loop(process_queue, position.offset)
        self._loops[queue] = loop
        self._share_limits()
        loop.start()

    async def give_up(self, queues: Iterable[MessageQueue]) -> None:
        """Stops pulling; what runs may run on, its results are ignored. The progress made is sent off first."""
        gone = [queue for queue in queues if queue in self._loops]
        for queue in gone:
            loop = self._loops.pop(queue)
            loop.process_queue.drop()
            loop.stop()
            logger.info("group %s gives up %s", self._group, loop.process_queue.name)
        self._share_limits()
        await self._offsets.persist(gone)
        for queue in gone:
            if queue not in self._loops:
                self._offsets.forget(queue)

    async def go_on_at(self, process_queue: ProcessQueue, offset: int) -> None:
        """The broker's word on where the queue goes on, or an operator's: what is cached is forgotten."""
        queue = process_queue.queue
        loop = self._loops.pop(queue, None)
        if loop is None or loop.process_queue is not process_queue:
            return
        process_queue.drop()
        loop.stop()
        self._offsets.reset(queue, offset)
        fresh = self._make_loop(ProcessQueue(queue, self._clock()), offset)
        self._loops[queue] = fresh
        fresh.start()
        await self._offsets.persist([queue])

    def made_room(self, process_queue: ProcessQueue) -> None:
        loop = self._loops.get(process_queue.queue)
        if loop is not None:
            loop.made_room()

    async def stop_pulling(self) -> None:
        """All loops end; the queues stay owned, so that what still runs can finish and count."""
        tasks = [task for loop in self._loops.values() if (task := loop.stop()) is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def persist(self) -> None:
        await self._offsets.persist(self.queues)

    async def persist_surely(self) -> list[MessageQueue]:
        return await self._offsets.persist_surely(self.queues)

    def _share_limits(self) -> None:
        self._limits = self._flow_control.limits(len(self._loops))
