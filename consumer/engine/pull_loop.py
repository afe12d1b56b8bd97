"""Pulls one owned queue for as long as it is owned (Java `DefaultMQPushConsumerImpl.pullMessage`).

One loop per queue, one pull in flight per loop; the broker holds a pull that finds nothing for up to 15 s. Decisions
are made in `pull_answer.py` and `flow_control.py`; this module carries them out in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from consumer.engine.brokers import PULL_SUSPEND_MS, Brokers
from consumer.engine.clock import Clock
from consumer.engine.consuming import Consuming
from consumer.engine.flow_control import FlowControl, reason_to_wait
from consumer.engine.offset_store import OffsetStore
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.pull_answer import (
    NEEDS_HEARTBEAT,
    RETRY_AFTER_MS,
    PullRefused,
    accepted_answer,
)
from consumer.engine.statistics import Statistics
from consumer.engine.subscriptions import Subscriptions
from consumer.engine.suspension import Suspension
from remoting.client.errors import ClientError
from remoting.client.pull_answer import PullAnswer, PullStatus
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.errors import WireError
from remoting.wire.headers.pull import COMMIT_OFFSET_FLAG, SUSPEND_FLAG, PullMessageHeader
from remoting.wire.limits import PULL_BYTES_MAX

logger = logging.getLogger(__name__)

# Kind of the complaint about a broker that is away.
UNREACHABLE = "unreachable"

# Flow control is checked again after this time at the latest: another queue's end raises the limits of this one.
ROOM_WAIT_S = 1.0
# A suspended loop tells that it lives after this time: one that is silent for too long counts as lost.
SUSPENDED_WAIT_S = 30.0
# A broker that answers at once and with the same offset is asked again after this pause, so that no loop spins.
SPIN_ANSWER_MS = 50
SPIN_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class PullContext:
    """What all pull loops of a consumer share.

    `process_queues` holds the queues owned now; `request_heartbeat` is called when a broker does not know the
    subscription.
    """

    brokers: Brokers
    offsets: OffsetStore
    subscriptions: Subscriptions
    statistics: Statistics
    clock: Clock
    consuming: Consuming
    flow_control: FlowControl
    process_queues: Mapping[MessageQueue, ProcessQueue]
    suspension: Suspension
    request_heartbeat: Callable[[], None]
    complaints: ComplaintLog = field(default_factory=lambda: ComplaintLog(logger))


class PullLoop:
    """`next_offset` is where the next pull starts. `start()` once; `stop()` cancels, also a pull that is held.

    `offset_illegal` is called with the dropped process queue and the offset at which the broker wants it to go on.
    """

    def __init__(
        self,
        process_queue: ProcessQueue,
        next_offset: int,
        context: PullContext,
        offset_illegal: Callable[[ProcessQueue, int], None],
    ) -> None:
        self.process_queue = process_queue
        self.next_offset = next_offset
        self._context = context
        self._offset_illegal = offset_illegal
        self._broker_id = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"pull {self.process_queue.name}")

    def stop(self) -> asyncio.Task[None] | None:
        """Cancels the loop and returns its task, for callers that must wait for its end."""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        return self._task

    async def _run(self) -> None:
        """Catches every error and goes on: a queue without its loop would not be pulled any more."""
        process_queue, context = self.process_queue, self._context
        while not process_queue.is_dropped:
            process_queue.last_pull_ms = context.clock()
            if context.suspension.reasons:
                await context.suspension.wait(SUSPENDED_WAIT_S)
                continue
            if self._must_wait():
                await self._wait_for_room()
                continue
            offset, began_ms = self.next_offset, context.clock()
            try:
                answer = await self._pull()
            except PullRefused as refusal:
                await self._refused(refusal)
            except (ClientError, WireError) as error:
                broker_name = process_queue.queue.broker_name
                context.complaints.warn(broker_name, UNREACHABLE, "cannot pull from broker %s: %s", broker_name, error)
                await asyncio.sleep(RETRY_AFTER_MS / 1000)
            except Exception:
                logger.exception("pulling %s failed; trying again", process_queue.name)
                await asyncio.sleep(RETRY_AFTER_MS / 1000)
            else:
                context.complaints.resolved(process_queue.queue.broker_name, UNREACHABLE)
                self._take(answer)
                if answer.messages and context.flow_control.pull_interval_ms:
                    await asyncio.sleep(context.flow_control.pull_interval_ms / 1000)
                elif answer.next_offset == offset and context.clock() - began_ms < SPIN_ANSWER_MS:
                    await asyncio.sleep(SPIN_PAUSE_S)

    async def _pull(self) -> PullAnswer:
        context, queue = self._context, self.process_queue.queue
        known = context.offsets.offset_with_pull(queue)
        # The pull carries the offset to commit, but only to a master.
        commits = known > 0 and self._broker_id == 0
        header = PullMessageHeader(
            consumer_group=context.subscriptions.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=self.next_offset,
            max_msg_nums=context.flow_control.pull_batch_size,
            sys_flag=SUSPEND_FLAG | (COMMIT_OFFSET_FLAG if commits else 0),
            commit_offset=known,
            suspend_timeout_millis=PULL_SUSPEND_MS,
            sub_version=context.subscriptions.version_ms,
            expression_type=context.subscriptions.kind(queue.topic),
            max_msg_bytes=PULL_BYTES_MAX,
            bname=queue.broker_name,
        )
        began_ms = context.clock()
        answer = await context.brokers.pull(header, queue.broker_name, self._broker_id)
        result = accepted_answer(answer, context.subscriptions)
        if result.messages:
            context.statistics.pulled(queue.topic, len(result.messages), context.clock() - began_ms)
        return result

    def _take(self, answer: PullAnswer) -> None:
        process_queue, context = self.process_queue, self._context
        if process_queue.is_dropped:
            return
        self._broker_id = answer.suggested_broker_id
        match answer.status:
            case PullStatus.FOUND:
                self.next_offset = answer.next_offset
                added = process_queue.put(answer.messages, answer.next_offset)
                if added:
                    context.consuming.submit(added)
                else:
                    self._skip_filtered()
            case PullStatus.NO_NEW_MESSAGE | PullStatus.NO_MATCHED_MESSAGE:
                self.next_offset = answer.next_offset
                self._skip_filtered()
            case PullStatus.OFFSET_ILLEGAL if answer.next_offset == self.next_offset:
                name, text = process_queue.name, "%s: the broker refuses offset %d and suggests the same"
                context.complaints.warn(name, "offset refused", text, name, self.next_offset)
            case PullStatus.OFFSET_ILLEGAL:
                logger.warning(
                    "%s: offset %d is not there, going on at %d",
                    process_queue.name,
                    self.next_offset,
                    answer.next_offset,
                )
                process_queue.drop()
                self._offset_illegal(process_queue, answer.next_offset)

    def _skip_filtered(self) -> None:
        """Counts what was filtered out as consumed, once nothing before it is unfinished."""
        if not self.process_queue.message_count:
            self._context.offsets.advance(self.process_queue.queue, self.next_offset)

    async def _refused(self, refusal: PullRefused) -> None:
        if refusal.retry_after_ms == RETRY_AFTER_MS:
            name = self.process_queue.name
            self._context.complaints.warn(name, "pull refused", "%s may not be pulled: %s", name, refusal)
        if refusal.code in NEEDS_HEARTBEAT:
            self._context.request_heartbeat()
        await asyncio.sleep(refusal.retry_after_ms / 1000)

    def _must_wait(self) -> bool:
        context = self._context
        limits = context.flow_control.limits(len(context.process_queues))
        return reason_to_wait(self.process_queue, limits) is not None

    async def _wait_for_room(self) -> None:
        try:
            async with asyncio.timeout(ROOM_WAIT_S):
                while self._must_wait():
                    await self.process_queue.wait_for_removal()
        except TimeoutError:
            pass
