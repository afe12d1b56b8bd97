"""The message queues that this member owns: takes, releases and moves them, with their offsets.

Owns the table of process queues, which others read, and a pull loop for each. Callers: the rebalancer, requests of
brokers, and the pull loops by `move`. Affects: process queues, pull loops, offset store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from consumer.engine.clock import Clock
from consumer.engine.offset_store import OffsetStore
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.pull_loop import PullContext, PullLoop
from consumer.engine.start_position import OffsetQueries, StartRule, start_position
from remoting.wire.bodies.message_queue import MessageQueue

logger = logging.getLogger(__name__)


class OwnedQueues:
    """`process_queues` is the table that it shares with `context` and `Consuming`; empty at first."""

    def __init__(
        self,
        *,
        group: str,
        process_queues: dict[MessageQueue, ProcessQueue],
        offsets: OffsetStore,
        brokers: OffsetQueries,
        start_rule: StartRule,
        clock: Clock,
        context: PullContext,
    ) -> None:
        self._group = group
        self._process_queues = process_queues
        self._offsets = offsets
        self._brokers = brokers
        self._start_rule = start_rule
        self._clock = clock
        self._context = context
        self._loops: dict[MessageQueue, PullLoop] = {}
        self._moves: set[asyncio.Task[None]] = set()

    @property
    def queues(self) -> list[MessageQueue]:
        return list(self._process_queues)

    def of_topic(self, topic: str) -> Mapping[MessageQueue, ProcessQueue]:
        return {queue: owned for queue, owned in self._process_queues.items() if queue.topic == topic}

    async def take(self, queue: MessageQueue) -> None:
        """Starts to pull `queue` at the group's offset. Raises ClientError when that cannot be determined."""
        committed = await self._offsets.load(queue)
        position = await start_position(queue, committed, self._start_rule, self._brokers)
        if queue in self._process_queues:
            return
        process_queue = ProcessQueue(queue, self._clock())
        logger.info("group %s takes %s at %d (%s)", self._group, process_queue.name, position.offset, position.reason)
        # From now on in memory: a member that stops before it has consumed anything commits where it started.
        self._offsets.advance(queue, position.offset)
        self._start_loop(process_queue, position.offset)

    async def release(self, queues: Iterable[MessageQueue]) -> None:
        """Stops pulling `queues` and sends their offsets off; results of listeners that still run are ignored."""
        released = [queue for queue in queues if self._stop_loop(queue)]
        await self._offsets.persist(released)
        for queue in released:
            if queue not in self._process_queues:
                self._offsets.forget(queue)

    def move(self, process_queue: ProcessQueue, offset: int) -> None:
        """Goes on at `offset`, as a broker or an operator wants it; what was pulled and not consumed is dropped.

        Results that are still to come are ignored, so there is nothing to wait for (Java waits 10 s).
        """
        self._begin(self._move(process_queue, offset))

    def reset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Moves those of the given queues that this member owns."""
        for queue, process_queue in list(self._process_queues.items()):
            if queue in offsets:
                self.move(process_queue, offsets[queue])

    async def stop_pulling(self) -> None:
        """Ends all pull loops. The queues stay owned, so that listeners that still run can finish and count."""
        tasks: list[asyncio.Task[None]] = list(self._moves)
        for task in tasks:
            task.cancel()
        tasks += filter(None, [loop.stop() for loop in self._loops.values()])
        await asyncio.gather(*tasks, return_exceptions=True)

    async def persist(self) -> None:
        await self._offsets.persist(self.queues)

    async def persist_and_confirm(self) -> list[MessageQueue]:
        return await self._offsets.persist_and_confirm(self.queues)

    async def _move(self, process_queue: ProcessQueue, offset: int) -> None:
        queue = process_queue.queue
        if self._process_queues.get(queue) is not process_queue:
            return
        self._stop_loop(queue)
        self._offsets.reset(queue, offset)
        self._start_loop(ProcessQueue(queue, self._clock()), offset)
        await self._offsets.persist([queue])

    def _start_loop(self, process_queue: ProcessQueue, offset: int) -> None:
        loop = PullLoop(process_queue, offset, self._context, offset_illegal=self.move)
        self._process_queues[process_queue.queue] = process_queue
        self._loops[process_queue.queue] = loop
        loop.start()

    def _stop_loop(self, queue: MessageQueue) -> bool:
        """Returns False when the queue is not owned."""
        process_queue = self._process_queues.pop(queue, None)
        if process_queue is None:
            return False
        process_queue.drop()
        self._loops.pop(queue).stop()
        logger.info("group %s releases %s", self._group, process_queue.name)
        return True

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"move a queue of {self._group}")
        self._moves.add(task)
        task.add_done_callback(self._moves.discard)
