"""The parts of a push consumer that exist from its start to its stop, and the order of both.

Made by `PushConsumer.start()` on the running event loop, in the process that consumes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from consumer.engine.broadcasting import DropFailed
from consumer.engine.broker_check import check_subscriptions
from consumer.engine.broker_requests import BrokerRequests
from consumer.engine.brokers import Brokers
from consumer.engine.clock import Clock
from consumer.engine.config import ConsumerConfig
from consumer.engine.consume_concurrently import ConsumeConcurrently
from consumer.engine.consume_directly import DirectConsumption
from consumer.engine.consume_orderly import ConsumeOrderly, OrderlyLimits
from consumer.engine.consume_trace import ConsumeTrace
from consumer.engine.consuming import Consuming
from consumer.engine.failures import Failures, RecordFailure
from consumer.engine.listening import Listener
from consumer.engine.offset_store import OffsetStore
from consumer.engine.offset_store.local import LocalOffsetStore
from consumer.engine.offset_store.remote import RemoteOffsetStore
from consumer.engine.owned_queues import InOrder, OwnedQueues
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.pull_loop import PullContext
from consumer.engine.queue_locks import QueueLocks
from consumer.engine.rebalancer import QueuesChanged, Rebalancer
from consumer.engine.running_info import running_info
from consumer.engine.send_back import SendBack
from consumer.engine.statistics import RecordDelivery, Statistics
from consumer.engine.subscriptions import Subscriptions
from consumer.engine.suspension import Suspension
from remoting.client.heartbeats import Heartbeats
from remoting.client.instance import ClientInstance
from remoting.client.producer import Producer
from remoting.client.trace import TraceDispatcher
from remoting.closing import close_in_turn
from remoting.wire.bodies.heartbeat import ConsumerData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import ConsumerRunningInfo
from remoting.wire.names import without_namespace

logger = logging.getLogger(__name__)

# RocketMQ's `persistConsumerOffsetInterval`.
PERSIST_INTERVAL_S = 5.0
# Extra heartbeats, sent because a broker does not know our subscription: at most one in this time.
EXTRA_HEARTBEAT_INTERVAL_S = 1.0
# RocketMQ's own group name for what a client sends in its own name.
INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"


class RunningConsumer:
    """`await start()`, then `await stop()`, once each."""

    def __init__(
        self,
        config: ConsumerConfig,
        listeners: Mapping[str, Listener],
        subscriptions: Subscriptions,
        *,
        client_id: str,
        clock: Clock,
        at_thread_end: Callable[[], None] | None,
        queues_changed: QueuesChanged | None = None,
        record_failure: RecordFailure | None = None,
        record_delivery: RecordDelivery | None = None,
    ) -> None:
        self._config = config
        self._subscriptions = subscriptions
        self._client = ClientInstance(config.namesrv, client_id=client_id)
        self._producer = Producer(config.namesrv, INNER_PRODUCER_GROUP, instance=self._client)
        self._extra_heartbeat = _ExtraHeartbeat(self._client.heartbeats)
        self._statistics = Statistics(clock, record_delivery)
        self._failures = Failures(client_id, clock, record_failure, is_on=config.keeps_failure_texts)
        self.suspension = Suspension()
        self._trace: TraceDispatcher | None = None
        if config.trace:
            self._trace = TraceDispatcher(self._client, topic=config.trace_topic)
            listeners = ConsumeTrace(
                group=without_namespace(config.namespace, config.group),
                client_id=client_id,
                record=self._trace.record,
                clock=clock,
                timeout_ms=config.concurrent.consume_timeout_ms,
            ).around(listeners)
        self._brokers = brokers = Brokers(self._client, config.group)
        self._locks: QueueLocks | None = None
        if config.is_orderly and not config.is_broadcasting:
            self._locks = QueueLocks(
                brokers, config.group, lost=self._lost_locks, renewed=self._renewed_locks, is_behind=self._is_behind
            )
        self._offsets = _offset_store(config, brokers, self._locks)
        # Shared: `owned` changes it, consuming and pull loops read it.
        self._process_queues: dict[MessageQueue, ProcessQueue] = {}
        send_back = (
            DropFailed(config.group)
            if config.is_broadcasting
            else SendBack(brokers, self._producer, config.group, config.reconsume_limit)
        )
        # Consuming in order; None: several messages of a queue at once.
        self._orderly: ConsumeOrderly | None = None
        self._consuming: Consuming
        if config.is_orderly:
            self._orderly = self._consuming = self._in_order(listeners, send_back, clock, at_thread_end)
        else:
            self._consuming = self._concurrently(listeners, send_back, clock, at_thread_end)
        self._owned = self._make_owned(clock)
        self._rebalancer = Rebalancer(
            client=self._client,
            brokers=brokers,
            subscriptions=subscriptions,
            strategy=config.strategy,
            owned=self._owned,
            clock=clock,
            queues_changed=queues_changed,
        )
        self._client.connections.on_request.update(
            BrokerRequests(
                group=config.group,
                rebalancer=self._rebalancer,
                owned=self._owned,
                offsets=self._offsets,
                running_info=self.running_info,
                directly=DirectConsumption(listeners, clock, is_orderly=config.is_orderly, at_thread_end=at_thread_end),
            ).handlers()
        )
        self._persist_loop: asyncio.Task[None] | None = None

    def _in_order(
        self,
        listeners: Mapping[str, Listener],
        send_back: SendBack | DropFailed,
        clock: Clock,
        at_thread_end: Callable[[], None] | None,
    ) -> ConsumeOrderly:
        config = self._config
        return ConsumeOrderly(
            group=config.group,
            listeners=listeners,
            limits=OrderlyLimits(config.concurrent.threads, config.suspend_ms, config.reconsume_limit),
            process_queues=self._process_queues,
            locks=self._locks,
            offsets=self._offsets,
            send_back=send_back,
            statistics=self._statistics,
            failures=self._failures,
            clock=clock,
            at_thread_end=at_thread_end,
        )

    def _concurrently(
        self,
        listeners: Mapping[str, Listener],
        send_back: SendBack | DropFailed,
        clock: Clock,
        at_thread_end: Callable[[], None] | None,
    ) -> ConsumeConcurrently:
        config = self._config
        return ConsumeConcurrently(
            group=config.group,
            listeners=listeners,
            limits=config.concurrent,
            process_queues=self._process_queues,
            offsets=self._offsets,
            send_back=send_back,
            statistics=self._statistics,
            failures=self._failures,
            clock=clock,
            suspension=self.suspension,
            breaker=config.breaker,
            at_thread_end=at_thread_end,
        )

    def _make_owned(self, clock: Clock) -> OwnedQueues:
        config, in_order = self._config, None
        if self._locks is not None and self._orderly is not None:
            in_order = InOrder(self._locks, self._orderly)
        return OwnedQueues(
            group=config.group,
            process_queues=self._process_queues,
            offsets=self._offsets,
            brokers=self._brokers,
            start_rule=config.start,
            clock=clock,
            context=PullContext(
                brokers=self._brokers,
                offsets=self._offsets,
                subscriptions=self._subscriptions,
                statistics=self._statistics,
                clock=clock,
                consuming=self._consuming,
                flow_control=replace(config.flow_control, span_max=None) if config.is_orderly else config.flow_control,
                process_queues=self._process_queues,
                suspension=self.suspension,
                request_heartbeat=self._extra_heartbeat.request,
            ),
            in_order=in_order,
        )

    @property
    def client_id(self) -> str:
        return self._client.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """Returns the message queues that this member owns now."""
        return self._owned.queues

    def running_info(self) -> ConsumerRunningInfo:
        return running_info(
            config=self._config,
            started_ms=self._subscriptions.version_ms,
            subscriptions=self._subscriptions,
            process_queues=list(self._process_queues.values()),
            offsets=self._offsets,
            statistics=self._statistics,
            failures=self._failures,
            suspended=self.suspension.reasons,
            is_orderly=self._config.is_orderly,
            locks=self._locks,
        )

    async def start(self) -> None:
        """Returns when what needs no broker is done; the first queues follow when brokers have answered. In this order:

        1. the file of offsets when broadcasting; then the client: connections and routes
        2. the check of SQL92 expressions; SubscriptionRefused ends the start
        3. the group in the heartbeats, since the first request on a new connection is one
        4. consuming, before anything is pulled; in order with the renewal of locks
        5. rebalance, which takes queues and starts their pull loops
        6. the regular commit of offsets; the sending of traces
        """
        await self._offsets.open()
        self._client.start()
        try:
            await check_subscriptions(self._subscriptions, self._brokers)
        except BaseException:
            await close_in_turn(self._client.close, self._offsets.close)
            raise
        self._client.heartbeats.add_consumer(self._config.group, self._consumer_data)
        await self._producer.start()
        self._consuming.start()
        if self._locks is not None:
            self._locks.start()
        self._rebalancer.start()
        self._persist_loop = asyncio.create_task(self._persist_regularly(), name=f"persist {self._config.group}")
        if self._trace is not None:
            await self._start_trace(self._trace)
        logger.info("group %s: member %s started", self._config.group, self.client_id)

    async def stop(self) -> None:
        """Stops so that nothing that was consumed is consumed again. In this order:

        1. rebalance: no new queues
        2. pulling: no new messages
        3. consuming: what has not begun is left to others, what runs may end, what failed is sent back
        4. offsets to the brokers, and their answers; then the locks of queues that are consumed in order
        5. unregister, so that the other members take the queues now and find the offsets there
        6. the traces that wait, then the connections

        A step that fails, or a caller that is cancelled in one, doesn't keep the next from being taken.
        """
        await close_in_turn(
            self._rebalancer.stop,
            self._extra_heartbeat.stop,
            self._owned.stop_pulling,
            lambda: self._consuming.stop(self._config.stop_timeout_s),
            self._persist_last,
            self._give_locks_back,
            lambda: self._client.heartbeats.remove_consumer(self._config.group),
            self._consuming.close,
            self._close_trace,
            self._producer.close,
            self._client.close,
            self._offsets.close,
        )
        logger.info("group %s: member %s stopped", self._config.group, self.client_id)

    async def _persist_last(self) -> None:
        if self._persist_loop is not None:
            self._persist_loop.cancel()
            await asyncio.gather(self._persist_loop, return_exceptions=True)
        failed = await self._owned.persist_and_confirm()
        if failed:
            logger.warning("group %s: the offsets of %d queues could not be committed", self._config.group, len(failed))

    async def _give_locks_back(self) -> None:
        if self._locks is not None:
            await close_in_turn(self._owned.unlock_all, self._locks.stop)

    async def _close_trace(self) -> None:
        if self._trace is not None:
            await self._trace.close()

    async def _start_trace(self, trace: TraceDispatcher) -> None:
        """A trace that cannot be sent must not keep anything from being consumed."""
        try:
            await trace.start()
        except Exception:
            logger.warning("group %s: its messages are not traced", self._config.group, exc_info=True)

    def _lost_locks(self, queues: list[MessageQueue]) -> None:
        self._owned.lose(queues)
        self._rebalancer.wake()

    async def _is_behind(self, queue: MessageQueue) -> bool:
        held = self._offsets.held_offset(queue)
        committed = await self._brokers.committed_offset(queue)
        return held is not None and committed is not None and committed > held

    def _renewed_locks(self) -> None:
        """Is called by the locks, which only a consumer in order has."""
        assert self._orderly is not None
        self._orderly.go_on()

    def _consumer_data(self) -> ConsumerData:
        return ConsumerData(
            consume_from_where=self._config.start.consume_from.value,
            group_name=self._config.group,
            message_model="BROADCASTING" if self._config.is_broadcasting else "CLUSTERING",
            subscription_data_set=self._subscriptions.to_wire(),
        )

    async def _persist_regularly(self) -> None:
        while True:
            await asyncio.sleep(PERSIST_INTERVAL_S)
            try:
                await self._owned.persist()
            except Exception:
                logger.exception("group %s: offsets were not committed; next time", self._config.group)


def _offset_store(config: ConsumerConfig, brokers: Brokers, locks: QueueLocks | None) -> OffsetStore:
    if config.is_broadcasting and config.offsets_folder is not None:
        return LocalOffsetStore(config.offsets_folder / config.group)
    return RemoteOffsetStore(brokers) if locks is None else RemoteOffsetStore(brokers, may_commit=locks.holds)


class _ExtraHeartbeat:
    """Sends a heartbeat out of turn, since a broker that does not know the subscription refuses pulls until then."""

    def __init__(self, heartbeats: Heartbeats) -> None:
        self._heartbeats = heartbeats
        self._task: asyncio.Task[object] | None = None
        self._sent_s = float("-inf")

    def request(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._sent_s >= EXTRA_HEARTBEAT_INTERVAL_S and (self._task is None or self._task.done()):
            self._sent_s = now_s
            self._task = asyncio.create_task(self._heartbeats.send_now(), name="extra heartbeat")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
