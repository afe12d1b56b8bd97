"""The message queues that this member owns: takes, releases and moves them, with their offsets.

Owns the table of process queues, which others read, and a pull loop for each. Callers: the rebalancer, requests of
brokers, the pull loops by `move`, the queue locks by `lose`. Affects: process queues, pull loops, offset store, locks.

A queue that is consumed in order is locked before it is taken, and handed over when it is released: the listener that
runs may end and counts, the offset is stored, then the lock is given back. Meanwhile the lock is renewed, so that no
other member begins (Java gives the lock up 20 s after its last renewal, while the listener still runs).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from consumer.engine.clock import Clock
from consumer.engine.consume_orderly import ConsumeOrderly
from consumer.engine.offset_store import OffsetStore
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.pull_loop import PullContext, PullLoop
from consumer.engine.queue_locks import QueueLocks
from consumer.engine.start_position import OffsetQueries, StartRule, start_position
from remoting.wire.bodies.message_queue import MessageQueue

logger = logging.getLogger(__name__)

# A listener that runs longer in a queue that was released loses the lock, and another member goes on beside it:
# RocketMQ's `consumeTimeout`.
HAND_OVER_TIMEOUT_S = 15 * 60.0
# How long a stop waits for the offsets and locks of queues that are being handed over.
HAND_OVERS_END_S = 5.0


@dataclass(frozen=True, slots=True)
class InOrder:
    """How queues are locked and handed over when they are consumed in order."""

    locks: QueueLocks
    consuming: ConsumeOrderly
    hand_over_timeout_s: float = HAND_OVER_TIMEOUT_S


class OwnedQueues:
    """`process_queues` is the table that it shares with `context` and `Consuming`; empty at first.

    `in_order` is None where no lock is needed.
    """

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
        in_order: InOrder | None = None,
    ) -> None:
        self._group = group
        self._process_queues = process_queues
        self._offsets = offsets
        self._brokers = brokers
        self._start_rule = start_rule
        self._clock = clock
        self._context = context
        self._in_order = in_order
        # Released, and not unlocked yet.
        self._leaving: dict[MessageQueue, ProcessQueue] = {}
        self._hand_overs: set[asyncio.Task[None]] = set()
        self._loops: dict[MessageQueue, PullLoop] = {}
        self._moves: set[asyncio.Task[None]] = set()

    @property
    def queues(self) -> list[MessageQueue]:
        return list(self._process_queues)

    def of_topic(self, topic: str) -> Mapping[MessageQueue, ProcessQueue]:
        return {queue: owned for queue, owned in self._process_queues.items() if queue.topic == topic}

    async def take(self, queue: MessageQueue) -> bool:
        """Starts to pull `queue` at the group's offset; returns False while another member consumes it in order.

        Raises ClientError when the offset cannot be determined.
        """
        if queue in self._leaving or not await self._lock(queue):
            return False
        try:
            committed = await self._offsets.load(queue)
            position = await start_position(queue, committed, self._start_rule, self._brokers)
        except BaseException:
            await self._unlock([queue])
            raise
        if queue in self._process_queues:
            return True
        if self._in_order is not None and not self._in_order.locks.holds(queue):
            return False
        process_queue = ProcessQueue(queue, self._clock())
        logger.info("group %s takes %s at %d (%s)", self._group, process_queue.name, position.offset, position.reason)
        # From now on in memory: a member that stops before it has consumed anything commits where it started.
        self._offsets.advance(queue, position.offset)
        self._start_loop(process_queue, position.offset)
        return True

    async def release(self, queues: Iterable[MessageQueue]) -> None:
        """Stops pulling `queues` and sends their offsets off.

        Results of listeners that still run are ignored, unless they are consumed in order: then they are waited for in
        the background.
        """
        if self._in_order is not None:
            for queue in queues:
                self._begin_hand_over(self._in_order, queue)
            return
        released = [queue for queue in queues if self._stop_loop(queue)]
        await self._offsets.persist(released)
        for queue in released:
            if queue not in self._process_queues:
                self._offsets.forget(queue)

    def lose(self, queues: Iterable[MessageQueue]) -> None:
        """Drops queues whose lock another member has: where the group is now, only the broker knows."""
        for queue in queues:
            self._stop_loop(queue)
            self._offsets.forget(queue)

    def move(self, process_queue: ProcessQueue, offset: int) -> None:
        """Goes on at `offset`, as a broker or an operator wants it; what was pulled and not consumed is dropped.

        Results that are still to come are ignored, so there is nothing to wait for (Java waits 10 s).
        """
        self._begin(self._move(process_queue, offset))

    def reset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Moves those of the given queues that this member owns; one that it hands over begins there elsewhere."""
        for queue, process_queue in list(self._process_queues.items()):
            if queue in offsets:
                self.move(process_queue, offsets[queue])
        for queue, process_queue in self._leaving.items():
            if queue in offsets:
                process_queue.drop()
                self._offsets.reset(queue, offsets[queue])

    async def stop_pulling(self) -> None:
        """Ends all pull loops. The queues stay owned, so that listeners that still run can finish and count."""
        tasks: list[asyncio.Task[None]] = list(self._moves)
        for task in tasks:
            task.cancel()
        tasks += filter(None, [loop.stop() for loop in self._loops.values()])
        await asyncio.gather(*tasks, return_exceptions=True)

    async def persist(self) -> None:
        if self._in_order is not None:
            self._in_order.locks.renew_if_unsure()
        await self._offsets.persist(self.queues)

    async def persist_and_confirm(self) -> list[MessageQueue]:
        if self._in_order is not None:
            await self._in_order.locks.make_sure()
        return await self._offsets.persist_and_confirm(self.queues)

    async def unlock_all(self) -> None:
        """Gives all locks back, except those of queues whose listener still runs: they expire."""
        if self._in_order is None:
            return
        if self._hand_overs:
            await asyncio.wait(self._hand_overs, timeout=HAND_OVERS_END_S)
        for hand_over in self._hand_overs:
            hand_over.cancel()
        await asyncio.gather(*self._hand_overs, return_exceptions=True)
        await self._unlock([queue for queue in self.queues if not self._in_order.consuming.is_busy(queue)])

    async def _lock(self, queue: MessageQueue) -> bool:
        return self._in_order is None or await self._in_order.locks.lock(queue)

    async def _unlock(self, queues: list[MessageQueue]) -> None:
        if self._in_order is not None:
            await self._in_order.locks.unlock(queues)

    def _begin_hand_over(self, in_order: InOrder, queue: MessageQueue) -> None:
        process_queue = self._process_queues.get(queue)
        if process_queue is None:
            return
        self._stop_pulling(process_queue)
        task = asyncio.create_task(self._hand_over(in_order, process_queue), name=f"hand over {process_queue.name}")
        self._leaving[queue] = process_queue
        self._hand_overs.add(task)
        task.add_done_callback(self._hand_overs.discard)

    async def _hand_over(self, in_order: InOrder, process_queue: ProcessQueue) -> None:
        queue = process_queue.queue
        try:
            await self._let_finish(in_order, process_queue)
            await in_order.locks.make_sure()
            await self._offsets.persist_and_confirm([queue])
            self._offsets.forget(queue)
            await in_order.locks.unlock([queue])
        except Exception:
            logger.exception("group %s: %s was not handed over; its lock expires", self._group, process_queue.name)
        finally:
            del self._leaving[queue]

    async def _let_finish(self, in_order: InOrder, process_queue: ProcessQueue) -> None:
        """Returns when the listener has ended that runs for the queue, or has run for too long."""
        queue = process_queue.queue
        try:
            await self._offsets.persist([queue])
            async with asyncio.timeout(in_order.hand_over_timeout_s):
                await in_order.consuming.finished(queue)
        except TimeoutError:
            text = "group %s: a listener has run in %s for too long; another member goes on beside it"
            logger.error(text, self._group, process_queue.name)
        finally:
            process_queue.drop()

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
        process_queue = self._process_queues.get(queue)
        if process_queue is None:
            return False
        process_queue.drop()
        self._stop_pulling(process_queue)
        return True

    def _stop_pulling(self, process_queue: ProcessQueue) -> None:
        del self._process_queues[process_queue.queue]
        self._loops.pop(process_queue.queue).stop()
        logger.info("group %s releases %s", self._group, process_queue.name)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"move a queue of {self._group}")
        self._moves.add(task)
        task.add_done_callback(self._moves.discard)
