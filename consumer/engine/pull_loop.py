"""Pulls one owned queue for as long as it is owned (Java `DefaultMQPushConsumerImpl.pullMessage`).

One loop per queue, one pull in flight per loop; the broker holds a pull that finds nothing for up to 15 s. Everything
that is decided on the way is in `pull_answer.py` and `flow_control.py`; this is the order in which it is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from consumer.engine.brokers import PULL_SUSPEND_MS, Brokers
from consumer.engine.clock import Clock
from consumer.engine.complaints import Complaints
from consumer.engine.flow_control import Limits, reason_to_wait
from consumer.engine.offset_store import OffsetStore
from consumer.engine.process_queue import CachedMessage, ProcessQueue
from consumer.engine.pull_answer import (
    HEARTBEAT_CURES,
    RETRY_AFTER_MS,
    PullAnswer,
    PullRefused,
    PullStatus,
    read_pull_answer,
)
from consumer.engine.statistics import Statistics
from consumer.engine.subscriptions import Subscriptions
from remoting.client.errors import ClientError
from remoting.wire.errors import WireError
from remoting.wire.headers.pull import COMMIT_OFFSET_FLAG, SUSPEND_FLAG, PullMessageHeader
from remoting.wire.limits import PULL_BYTES_MAX, PULL_MESSAGES_MAX

logger = logging.getLogger(__name__)

# Looked at again at the latest, should the note that there is room be lost.
ROOM_WAIT_S = 1.0
# A broker that answers at once and says nothing new is asked again after this pause: no answer may make a loop spin.
SPIN_ANSWER_MS = 50
SPIN_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class PullContext:
    """What all pull loops of a consumer share.

    `submit` hands new messages on; `limits` are those of a queue now; `stale` is called when the broker does not know
    the subscription; `moved` with a dropped queue and the offset at which the broker wants it to go on.
    """

    brokers: Brokers
    offsets: OffsetStore
    subscriptions: Subscriptions
    statistics: Statistics
    clock: Clock
    submit: Callable[[list[CachedMessage]], None]
    limits: Callable[[], Limits]
    stale: Callable[[], None]
    moved: Callable[[ProcessQueue, int], None]
    complaints: Complaints = field(default_factory=lambda: Complaints(logger))


class PullLoop:
    """`next_offset` is where the next pull starts. `start()` once; `stop()` cancels, also a pull that is held."""

    def __init__(self, process_queue: ProcessQueue, next_offset: int, context: PullContext) -> None:
        self.process_queue = process_queue
        self.next_offset = next_offset
        self._context = context
        self._broker_id = 0
        self._room: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"pull {self.process_queue.name}")

    def stop(self) -> asyncio.Task[None] | None:
        """Returns the task, to be awaited by those who must know that it is over."""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        return self._task

    def made_room(self) -> None:
        """Called when messages were finished: ends a wait for room."""
        if self._room is not None and reason_to_wait(self.process_queue, self._context.limits()) is None:
            self._room.set()

    async def _run(self) -> None:
        """Survives everything: a queue without its loop would be read by nobody."""
        process_queue, context = self.process_queue, self._context
        while not process_queue.is_dropped:
            process_queue.last_pull_ms = context.clock()
            if reason_to_wait(process_queue, context.limits()) is not None:
                await self._wait_for_room()
                continue
            offset, began_ms = self.next_offset, context.clock()
            try:
                answer = await self._pull()
            except PullRefused as refusal:
                await self._refused(refusal)
            except (ClientError, WireError) as error:
                broker_name = process_queue.queue.broker_name
                context.complaints.warn(broker_name, f"cannot pull from broker {broker_name}: {error}")
                await asyncio.sleep(RETRY_AFTER_MS / 1000)
            except Exception:
                logger.exception("pulling %s failed; trying again", process_queue.name)
                await asyncio.sleep(RETRY_AFTER_MS / 1000)
            else:
                context.complaints.settled(process_queue.queue.broker_name)
                self._take(answer)
                if answer.next_offset == offset and context.clock() - began_ms < SPIN_ANSWER_MS:
                    await asyncio.sleep(SPIN_PAUSE_S)

    async def _pull(self) -> PullAnswer:
        context, queue = self._context, self.process_queue.queue
        known = context.offsets.known(queue) or 0
        # Progress rides along, but only to a master.
        commits = known > 0 and self._broker_id == 0
        header = PullMessageHeader(
            consumer_group=context.subscriptions.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=self.next_offset,
            max_msg_nums=PULL_MESSAGES_MAX,
            sys_flag=SUSPEND_FLAG | (COMMIT_OFFSET_FLAG if commits else 0),
            commit_offset=known,
            suspend_timeout_millis=PULL_SUSPEND_MS,
            sub_version=context.subscriptions.version_ms,
            expression_type="TAG",
            max_msg_bytes=PULL_BYTES_MAX,
            bname=queue.broker_name,
        )
        began_ms = context.clock()
        answer = await context.brokers.pull(header, queue.broker_name, self._broker_id)
        result = read_pull_answer(answer, context.subscriptions)
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
                    context.submit(added)
                else:
                    self._note_filtered()
            case PullStatus.NO_NEW_MESSAGE | PullStatus.NO_MATCHED_MESSAGE:
                self.next_offset = answer.next_offset
                self._note_filtered()
            case PullStatus.OFFSET_ILLEGAL if answer.next_offset == self.next_offset:
                context.complaints.warn(
                    process_queue.name,
                    f"{process_queue.name}: the broker refuses offset {self.next_offset}, and wants it",
                )
            case PullStatus.OFFSET_ILLEGAL:
                logger.warning(
                    "%s: offset %d is not there, going on at %d",
                    process_queue.name,
                    self.next_offset,
                    answer.next_offset,
                )
                process_queue.drop()
                context.moved(process_queue, answer.next_offset)

    def _note_filtered(self) -> None:
        """What was filtered out counts as consumed, once nothing before it is unfinished."""
        if not self.process_queue.message_count:
            self._context.offsets.advance(self.process_queue.queue, self.next_offset)

    async def _refused(self, refusal: PullRefused) -> None:
        if refusal.retry_after_ms == RETRY_AFTER_MS:
            name = self.process_queue.name
            self._context.complaints.warn(name, f"{name} may not be pulled: {refusal}")
        if refusal.code in HEARTBEAT_CURES:
            self._context.stale()
        await asyncio.sleep(refusal.retry_after_ms / 1000)

    async def _wait_for_room(self) -> None:
        self._room = asyncio.Event()
        try:
            async with asyncio.timeout(ROOM_WAIT_S):
                await self._room.wait()
        except TimeoutError:
            pass
        finally:
            self._room = None
