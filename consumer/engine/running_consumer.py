"""The parts of a push consumer that exist from its start to its stop, and the order of both.

Made by `PushConsumer.start()` on the running event loop, in the process that consumes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from consumer.engine.broker_requests import BrokerRequests
from consumer.engine.brokers import Brokers
from consumer.engine.clock import Clock
from consumer.engine.config import ConsumerConfig
from consumer.engine.consume_concurrently import ConsumeConcurrently
from consumer.engine.consuming import Consuming
from consumer.engine.listening import Listener
from consumer.engine.offset_store import OffsetStore
from consumer.engine.offset_store.remote import RemoteOffsetStore
from consumer.engine.owned_queues import OwnedQueues
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.pull_loop import PullContext
from consumer.engine.rebalancer import Rebalancer
from consumer.engine.running_info import running_info
from consumer.engine.send_back import SendBack
from consumer.engine.statistics import Statistics
from consumer.engine.subscriptions import Subscriptions
from remoting.client.heartbeats import Heartbeats
from remoting.client.instance import ClientInstance
from remoting.client.producer import Producer
from remoting.wire.bodies.heartbeat import ConsumerData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import ConsumerRunningInfo

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
    ) -> None:
        self._config = config
        self._subscriptions = subscriptions
        self._client = ClientInstance(config.namesrv, client_id=client_id)
        self._producer = Producer(config.namesrv, INNER_PRODUCER_GROUP, instance=self._client)
        self._extra_heartbeat = _ExtraHeartbeat(self._client.heartbeats)
        self._statistics = Statistics(clock)
        brokers = Brokers(self._client, config.group)
        self._offsets: OffsetStore = RemoteOffsetStore(brokers)
        # Shared: `owned` changes it, consuming and pull loops read it.
        self._process_queues: dict[MessageQueue, ProcessQueue] = {}
        self._consuming: Consuming = ConsumeConcurrently(
            group=config.group,
            listeners=listeners,
            limits=config.concurrent,
            process_queues=self._process_queues,
            offsets=self._offsets,
            send_back=SendBack(brokers, self._producer, config.group, config.max_reconsume_times),
            statistics=self._statistics,
            clock=clock,
            at_thread_end=at_thread_end,
        )
        self._owned = OwnedQueues(
            group=config.group,
            process_queues=self._process_queues,
            offsets=self._offsets,
            brokers=brokers,
            start_rule=config.start,
            clock=clock,
            context=PullContext(
                brokers=brokers,
                offsets=self._offsets,
                subscriptions=subscriptions,
                statistics=self._statistics,
                clock=clock,
                consuming=self._consuming,
                flow_control=config.flow_control,
                process_queues=self._process_queues,
                request_heartbeat=self._extra_heartbeat.request,
            ),
        )
        self._rebalancer = Rebalancer(
            client=self._client,
            brokers=brokers,
            subscriptions=subscriptions,
            strategy=config.strategy,
            owned=self._owned,
            clock=clock,
        )
        self._client.connections.on_request.update(
            BrokerRequests(
                group=config.group,
                rebalancer=self._rebalancer,
                owned=self._owned,
                offsets=self._offsets,
                running_info=self.running_info,
            ).handlers()
        )
        self._persist_loop: asyncio.Task[None] | None = None

    @property
    def client_id(self) -> str:
        return self._client.client_id

    @property
    def queues(self) -> list[MessageQueue]:
        """Returns the message queues that this member owns now."""
        return self._owned.queues

    def running_info(self) -> ConsumerRunningInfo:
        return running_info(
            namesrv=self._config.namesrv,
            threads=self._config.concurrent.threads,
            started_ms=self._subscriptions.version_ms,
            subscriptions=self._subscriptions,
            process_queues=list(self._process_queues.values()),
            offsets=self._offsets,
            statistics=self._statistics,
        )

    async def start(self) -> None:
        """Returns at once; the first queues follow when brokers have answered. In this order:

        1. client: connections and routes
        2. the group in the heartbeats, since the first request on a new connection is one
        3. consuming, before anything is pulled
        4. rebalance, which takes queues and starts their pull loops
        5. the regular commit of offsets
        """
        self._client.start()
        self._client.heartbeats.add_consumer(self._config.group, self._consumer_data)
        await self._producer.start()
        self._consuming.start()
        self._rebalancer.start()
        self._persist_loop = asyncio.create_task(self._persist_regularly(), name=f"persist {self._config.group}")
        logger.info("group %s: member %s started", self._config.group, self.client_id)

    async def stop(self) -> None:
        """Stops so that nothing that was consumed is consumed again. In this order:

        1. rebalance: no new queues
        2. pulling: no new messages
        3. consuming: what has not begun is left to others, what runs may end, what failed is sent back
        4. offsets to the brokers, and their answers
        5. unregister, so that the other members take the queues now and find the offsets there
        6. the connections
        """
        group = self._config.group
        if self._persist_loop is not None:
            self._persist_loop.cancel()
            await asyncio.gather(self._persist_loop, return_exceptions=True)
        await self._rebalancer.stop()
        await self._extra_heartbeat.stop()
        await self._owned.stop_pulling()
        await self._consuming.stop(self._config.stop_timeout_s)
        failed = await self._owned.persist_and_confirm()
        if failed:
            logger.warning("group %s: the offsets of %d queues could not be committed", group, len(failed))
        await self._client.heartbeats.remove_consumer(group)
        await self._consuming.close()
        await self._producer.close()
        await self._client.close()
        logger.info("group %s: member %s stopped", group, self.client_id)

    def _consumer_data(self) -> ConsumerData:
        return ConsumerData(
            consume_from_where=self._config.start.consume_from.value,
            group_name=self._config.group,
            subscription_data_set=self._subscriptions.to_wire(),
        )

    async def _persist_regularly(self) -> None:
        while True:
            await asyncio.sleep(PERSIST_INTERVAL_S)
            try:
                await self._owned.persist()
            except Exception:
                logger.exception("group %s: offsets were not committed; next time", self._config.group)


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
