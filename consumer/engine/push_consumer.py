"""One member of a consumer group (Java `DefaultMQPushConsumer`): composition, start and stop.

Runs on one event loop, in one process: connections, threads and client id are made by `start()`, so that a consumer
prepared before a fork is harmless after it. Network trouble never ends it; it says what is wrong and tries again.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from consumer.engine.broker_requests import Member, handlers
from consumer.engine.brokers import Brokers
from consumer.engine.client_id import new_client_id
from consumer.engine.clock import Clock, now_ms
from consumer.engine.consume_concurrently import ConsumeConcurrently
from consumer.engine.flow_control import FlowControl
from consumer.engine.listening import Listener
from consumer.engine.offset_store import OffsetStore
from consumer.engine.offset_store.remote import RemoteOffsetStore
from consumer.engine.outcome import Settlement
from consumer.engine.owned_queues import OwnedQueues
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.pull_loop import PullContext, PullLoop
from consumer.engine.rebalancer import Rebalancer
from consumer.engine.running_info import running_info
from consumer.engine.send_back import SendBack
from consumer.engine.start_position import StartRule
from consumer.engine.statistics import Statistics
from consumer.engine.subscriptions import Subscriptions, subscribe
from remoting.allocation import STRATEGIES
from remoting.client.instance import ClientInstance
from remoting.client.producer import Producer
from remoting.wire.bodies.heartbeat import ConsumerData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import ConsumerRunningInfo

logger = logging.getLogger(__name__)

# RocketMQ's `persistConsumerOffsetInterval`.
PERSIST_INTERVAL_S = 5.0
# How long a stop waits for listeners that run.
STOP_TIMEOUT_S = 15.0
# Heartbeats out of turn, because a broker does not know our subscription: at most one in this time.
STALE_HEARTBEAT_GAP_S = 1.0
# RocketMQ's own group name for what a client sends in its own name.
INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
THREADS_MAX = 1000


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """`namesrv` "host:port;host:port". `threads`: listeners of one instance that run at once."""

    namesrv: str
    group: str
    threads: int = 20
    max_reconsume_times: int = 16
    start: StartRule = field(default_factory=StartRule)
    strategy: str = "AVG"
    flow_control: FlowControl = field(default_factory=FlowControl)
    stop_timeout_s: float = STOP_TIMEOUT_S

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if not 1 <= self.threads <= THREADS_MAX:
            raise ValueError(f"group {self.group!r}: threads is {self.threads}; 1 to {THREADS_MAX} are allowed")
        if self.max_reconsume_times < 0:
            raise ValueError(f"group {self.group!r}: max_reconsume_times is {self.max_reconsume_times}, less than 0")
        if self.strategy not in STRATEGIES:
            raise ValueError(f"group {self.group!r}: no allocation strategy {self.strategy!r}; {', '.join(STRATEGIES)}")


class PushConsumer:
    """`await start()`, later `await stop()`, once each. `listeners`: one per topic.

    `at_thread_end` runs in each consuming thread before it ends.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        listeners: Mapping[str, Listener],
        *,
        at_thread_end: Callable[[], None] | None = None,
        clock: Clock = now_ms,
    ) -> None:
        """Raises MessageError for a group, topic or tag expression that RocketMQ would not take."""
        self.config = config
        self._listeners = dict(listeners)
        self._at_thread_end = at_thread_end
        self._clock = clock
        self._parts: _Parts | None = None
        self._persist_loop: asyncio.Task[None] | None = None
        self._pid = os.getpid()
        self._tags = {topic: listener.tags for topic, listener in self._listeners.items()}
        subscribe(config.group, self._tags, 0)

    @property
    def client_id(self) -> str:
        """ "" before `start()`."""
        return self._parts.client.client_id if self._parts else ""

    @property
    def queues(self) -> list[MessageQueue]:
        """Those owned now."""
        return self._parts.owned.queues if self._parts else []

    def running_info(self) -> ConsumerRunningInfo:
        parts = self._started()
        return running_info(
            namesrv=self.config.namesrv,
            threads=self.config.threads,
            started_ms=parts.subscriptions.version_ms,
            subscriptions=parts.subscriptions,
            process_queues=parts.owned.process_queues,
            offsets=parts.offsets,
            statistics=parts.statistics,
        )

    async def start(self) -> None:
        """Returns at once; the first queues follow when brokers have answered. In this order:

        1. client: connections and routes, with the answers to what brokers may ask from the first moment on
        2. the group in the heartbeats, since the first thing on a new connection is one
        3. consuming, so that whatever is pulled finds its workers
        4. rebalance, which takes queues and starts their pull loops
        5. the regular commit of progress
        """
        if self._parts is not None:
            raise RuntimeError(f"this consumer of group {self.config.group!r} was started before")
        if os.getpid() != self._pid:
            raise RuntimeError("this consumer was made before a fork: make it in the process that runs it")
        parts = self._parts = _Parts(self)
        parts.client.start()
        parts.client.heartbeats.add_consumer(self.config.group, self._describe)
        await parts.producer.start()
        parts.consuming.start()
        parts.rebalancer.start()
        self._persist_loop = asyncio.create_task(self._persist_for_ever(), name=f"persist {self.config.group}")
        logger.info("group %s: member %s started", self.config.group, self.client_id)

    async def stop(self) -> None:
        """Nothing that was consumed is consumed again. In this order:

        1. rebalance: no new queues
        2. pulling: no new messages
        3. consuming: what has not begun is left to others, what runs may end, what failed is sent back
        4. progress to the brokers, and their answers
        5. goodbye, so that the others take the queues now and find the progress there
        6. the connections
        """
        parts = self._started()
        if self._persist_loop is not None:
            self._persist_loop.cancel()
            await asyncio.gather(self._persist_loop, return_exceptions=True)
        await parts.rebalancer.stop()
        await parts.end_tasks()
        await parts.owned.stop_pulling()
        await parts.consuming.stop(self.config.stop_timeout_s)
        lost = await parts.owned.persist_surely()
        if lost:
            logger.warning("group %s: the progress of %d queues could not be committed", self.config.group, len(lost))
        await parts.client.heartbeats.remove_consumer(self.config.group)
        await parts.consuming.close()
        await parts.producer.close()
        await parts.client.close()
        logger.info("group %s: member %s stopped", self.config.group, self.client_id)

    def _started(self) -> _Parts:
        if self._parts is None:
            raise RuntimeError(f"this consumer of group {self.config.group!r} was not started")
        return self._parts

    def _describe(self) -> ConsumerData:
        return ConsumerData(
            consume_from_where=self.config.start.consume_from.value,
            group_name=self.config.group,
            subscription_data_set=self._started().subscriptions.document(),
        )

    async def _persist_for_ever(self) -> None:
        while True:
            await asyncio.sleep(PERSIST_INTERVAL_S)
            try:
                await self._started().owned.persist()
            except Exception:
                logger.exception("group %s: progress was not committed; next time", self.config.group)


class _Parts:
    """Everything that lives from start to stop, wired together."""

    def __init__(self, consumer: PushConsumer) -> None:
        config, clock = consumer.config, consumer._clock
        self.subscriptions: Subscriptions = subscribe(config.group, consumer._tags, clock())
        self.statistics = Statistics(clock)
        member = Member(
            group=config.group,
            members_changed=self._members_changed,
            running_info=consumer.running_info,
            progress=self._progress,
            reset=self._reset,
        )
        self.client = ClientInstance(config.namesrv, client_id=new_client_id(), on_request=handlers(member))
        self.producer = Producer(config.namesrv, INNER_PRODUCER_GROUP, instance=self.client)
        self.brokers = Brokers(self.client, config.group)
        self.offsets: OffsetStore = RemoteOffsetStore(self.brokers)
        self.owned = OwnedQueues(
            group=config.group,
            offsets=self.offsets,
            brokers=self.brokers,
            rule=config.start,
            flow_control=config.flow_control,
            clock=clock,
            make_loop=lambda process_queue, offset: PullLoop(process_queue, offset, self._pull_context),
        )
        self.consuming = ConsumeConcurrently(
            group=config.group,
            listeners=consumer._listeners,
            threads=config.threads,
            clock=clock,
            settlement=lambda again: Settlement(
                group=config.group,
                offsets=self.offsets,
                send_back=SendBack(self.brokers, self.producer, config.group, config.max_reconsume_times),
                statistics=self.statistics,
                released=self.owned.made_room,
                again=again,
            ),
            process_queues=lambda: self.owned.process_queues,
            at_thread_end=consumer._at_thread_end,
        )
        self.rebalancer = Rebalancer(
            client=self.client,
            brokers=self.brokers,
            subscriptions=self.subscriptions,
            strategy=config.strategy,
            owned=self.owned,
            clock=clock,
        )
        self._pull_context = PullContext(
            brokers=self.brokers,
            offsets=self.offsets,
            subscriptions=self.subscriptions,
            statistics=self.statistics,
            clock=clock,
            submit=self.consuming.submit,
            limits=lambda: self.owned.limits,
            stale=self._subscription_is_stale,
            moved=self._moved,
        )
        self._stale_s = 0.0
        self._tasks: set[asyncio.Task[object]] = set()

    def _members_changed(self) -> None:
        self.rebalancer.wake()

    def _progress(self, topic: str) -> dict[MessageQueue, int]:
        known = {queue: self.offsets.known(queue) for queue in self.owned.queues if queue.topic == topic}
        return {queue: offset for queue, offset in known.items() if offset is not None}

    def _reset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """220. Results that are still to come are ignored, so nothing has to be waited for (Java waits 10 s)."""
        for process_queue in self.owned.process_queues:
            if process_queue.queue in offsets:
                self._moved(process_queue, offsets[process_queue.queue])

    def _moved(self, process_queue: ProcessQueue, offset: int) -> None:
        self._begin(self.owned.go_on_at(process_queue, offset))

    def _subscription_is_stale(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._stale_s >= STALE_HEARTBEAT_GAP_S:
            self._stale_s = now_s
            self._begin(self.client.heartbeats.send_now())

    async def end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
