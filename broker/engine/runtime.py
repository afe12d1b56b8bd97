"""The broker as a whole: what it is made of, how it starts, how it stops. Wiring only; every rule lives elsewhere.

Start: the store recovers, the facts are read, ports are bound, loops begin. Stop, in this order and for these reasons:
1. the name server closes, who waits for the disk is answered, and the broker's sockets close: nothing new comes in;
2. held pulls and watchers are forgotten, because their connections are gone;
3. the loops end, so that nobody writes any more;
4. delay progress and committed offsets are saved, while the store is there to say what is flushed;
5. the store flushes and closes, and lets go of its folder.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os

from broker.engine.accepting import Accepting
from broker.engine.config import BrokerConfig
from broker.engine.filters.subscriptions import SubscriptionFilters
from broker.engine.groups import Groups
from broker.engine.held_pulls import HeldPulls
from broker.engine.loops import Loop
from broker.engine.members import Members
from broker.engine.offsets import Offsets
from broker.engine.processors.broker_runtime_info import BrokerRuntimeInfo
from broker.engine.processors.check_client_config import CheckClientConfig
from broker.engine.processors.client_connections import ConsumerConnections, ProducerConnections
from broker.engine.processors.consume_stats import GetConsumeStats
from broker.engine.processors.consumer_list import ConsumerList
from broker.engine.processors.consumer_offset import QueryConsumerOffset, UpdateConsumerOffset
from broker.engine.processors.heartbeat import Heartbeat
from broker.engine.processors.pull_message import PullMessage
from broker.engine.processors.queue_offset import EarliestStoreTime, QueueOffset, SearchOffset
from broker.engine.processors.route import Routes
from broker.engine.processors.running_info import GetConsumerRunningInfo
from broker.engine.processors.scheduler_lease import SchedulerLease
from broker.engine.processors.scheduler_step import SchedulerStep
from broker.engine.processors.send_message import SendMessage
from broker.engine.processors.send_message_back import SendMessageBack
from broker.engine.processors.tables import Tables
from broker.engine.processors.topic_config import GetTopicConfig, QueryTopicConsumers
from broker.engine.processors.topic_stats import GetTopicStats
from broker.engine.processors.unregister_client import UnregisterClient
from broker.engine.processors.view_message import ViewMessage
from broker.engine.processors.watch_broker import WatchBroker
from broker.engine.requests import Processor, RequestTable
from broker.engine.schedule.delay import KIND as DELAY_KIND
from broker.engine.schedule.delay import DelayedDelivery
from broker.engine.schedule.driver import REFUSED_PAUSE_MS, Driver
from broker.engine.schedule.levels import parse_levels
from broker.engine.schedule.local_link import LocalLink
from broker.engine.schedule.progress import ProgressFile
from broker.engine.schedule.scheduler import Scheduler
from broker.engine.stats import Rates
from broker.engine.store.message_store import MessageStore, system_clock
from broker.engine.store.values import Appended, RecoveryReport, StoreConfig
from broker.engine.topics import Topics
from broker.engine.watch import Watch
from broker.engine.watch_states import WatchStates
from remoting.server import Server
from remoting.wire.codes import RequestCode as Code
from remoting.wire.message_id import UniqueKeyFactory

logger = logging.getLogger(__name__)

# RocketMQ's `accessMessageInMemoryMaxRatio`: so much of the RAM counts as "in memory".
HOT_SHARE = 0.4
# Senders give up after 3 s; a disk that takes longer is closed all the same, which flushes once more.
FLUSH_AT_STOP_S = 3.0


class BrokerRuntime:
    """`start` raises StoreError, FactsUnreadable, DelayLevelError, ListenError, OSError; `stop` cleans up then too."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self._names = RequestTable("name server")
        self._requests = RequestTable("broker")
        self._name_server = Server(self._names)
        self._server = Server(self._requests)
        self._store: MessageStore | None = None
        self._parts: _Parts | None = None

    async def start(self) -> None:
        """When it returns, both ports answer; `config` then holds the real ones."""
        # Bound first, because the port stands in every message id; served last, when there is something to answer.
        namesrv_port = await self._name_server.bind(self.config.host, self.config.namesrv_port)
        port = await self._server.bind(self.config.host, self.config.port)
        self.config = dataclasses.replace(self.config, port=port, namesrv_port=namesrv_port)
        self._store = self._open_store()
        self._parts = _Parts(self.config, self._store, self._requests)
        self._parts.open()
        self._names.fill(self._parts.name_server_processors())
        self._requests.fill(self._parts.broker_processors())
        await self._server.serve()
        await self._name_server.serve()

    async def stop(self) -> None:
        """In the order of the module's note; whatever was started. Raises OSError; the store is closed all the same."""
        await self._name_server.close()
        if self._store is not None:
            await _flushed(self._store)
        await self._server.close()
        try:
            if self._parts is not None:
                await self._parts.close()
        finally:
            if self._store is not None:
                self._store.close()

    def _open_store(self) -> MessageStore:
        delays_ms = parse_levels(self.config.delay_levels).delays_ms
        store = MessageStore.open(self.config.store, StoreConfig(flush=self.config.flush, delay_levels_ms=delays_ms))
        report = store.recovery
        logger.info(
            "store %s: %s; %d records verified in %.0f ms",
            self.config.store,
            _how_it_ended(report),
            report.record_count,
            report.duration_ms,
        )
        for damage in report.damages:
            logger.error("store %s: set aside %s", self.config.store, damage)
        return store


class _Parts:
    """Everything between the sockets and the store."""

    def __init__(self, config: BrokerConfig, store: MessageStore, requests: RequestTable) -> None:
        facts = config.store / "config"
        levels = parse_levels(config.delay_levels)
        self._config = config
        self._store = store
        self.watch = Watch(system_clock)
        self.topics = Topics(facts, config, self._topic_changed)
        self.groups = Groups(facts, config, self.watch.group_changed)
        self.members = Members(system_clock, self.watch, self._notifies)
        self.offsets = Offsets(facts, self.watch.committed)
        self.held_pulls = HeldPulls(store.max_offset, store.properties_of)
        self.filters = SubscriptionFilters(has_sql=config.property_filter)
        self.put: Rates[str] = Rates()
        self.got: Rates[tuple[str, str]] = Rates()
        self.accepting = Accepting(store, levels, system_clock, body_bytes_max=config.body_bytes_max)
        self.delays = DelayedDelivery(
            store, levels, ProgressFile(facts / "delayOffset.json"), self._sooner, system_clock
        )
        self.scheduler = Scheduler({DELAY_KIND: self.delays}, system_clock, self.watch.scheduler_changed)
        self.lease = SchedulerLease(self.scheduler)
        self._loops = [
            Loop("save offsets", config.offsets_save_interval_s, self.offsets.save),
            Loop("expire members", config.member_scan_interval_s, self._expire_members),
        ]
        self._driving: asyncio.Task[None] | None = None
        requests.after_read.append(self.accepting.store_submitted)
        requests.on_lost += [
            self.members.connection_lost,
            self.held_pulls.drop,
            self.watch.connection_lost,
            self.lease.closed,
        ]

    def open(self) -> None:
        """Raises FactsUnreadable, OSError, StoreError."""
        self.topics.load()
        self.groups.load()
        self.offsets.load()
        self.offsets.bring_back(self._store.max_offset)
        self._store.on_appended += [self._count, self.held_pulls.appended, self.delays.appended, self.watch.appended]
        self.delays.recover()
        self.held_pulls.start()
        self.scheduler.start()
        for loop in self._loops:
            loop.start()
        if self._config.scheduler == "internal":
            self._driving = asyncio.create_task(self._drive(), name="internal scheduler")

    async def close(self) -> None:
        """Steps 2 to 4 of the module's note."""
        self.held_pulls.stop()
        self.watch.stop()
        self.scheduler.stop()
        if self._driving is not None:
            self._driving.cancel()
            await asyncio.gather(self._driving, return_exceptions=True)
        for loop in self._loops:
            await loop.stop()
        try:
            await self.delays.stop()
        finally:
            await self.offsets.save()

    async def _drive(self) -> None:
        """Nobody else would take over: what ends one driver must not end the deliveries."""
        while True:
            try:
                await Driver(LocalLink(self.scheduler), "internal").run()
            except Exception:
                logger.exception("the internal scheduler failed; it goes on")
                await asyncio.sleep(REFUSED_PAUSE_MS / 1000)

    def name_server_processors(self) -> dict[int, Processor]:
        routes = Routes(self.topics, self._config)
        return {
            Code.GET_ROUTEINFO_BY_TOPIC: routes.of_topic,
            Code.GET_BROKER_CLUSTER_INFO: routes.of_cluster,
            Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: routes.all_topics,
            Code.GET_TOPICS_BY_CLUSTER: routes.topics_of_cluster,
            Code.GET_SYSTEM_TOPIC_LIST_FROM_NS: routes.system_topics,
        }

    def broker_processors(self) -> dict[int, Processor]:
        config, store = self._config, self._store
        topics, groups, members, offsets = self.topics, self.groups, self.members, self.offsets
        send = SendMessage(topics, groups, self.accepting, UniqueKeyFactory(), config)
        pull = PullMessage(
            topics, groups, members, offsets, store, self.held_pulls, self.watch, self.got, self.filters, config
        )
        edges = QueueOffset(store)
        whole = Tables(topics, groups, offsets)
        states = WatchStates(
            self.watch, topics, groups, members, offsets, store, lambda: self.scheduler.state, config, system_clock
        )
        return {
            Code.SEND_MESSAGE: send,
            Code.SEND_MESSAGE_V2: send,
            Code.SEND_BATCH_MESSAGE: send,
            Code.CONSUMER_SEND_MSG_BACK: SendMessageBack(topics, groups, store, self.accepting, config),
            Code.PULL_MESSAGE: pull,
            Code.LITE_PULL_MESSAGE: pull,
            Code.VIEW_MESSAGE_BY_ID: ViewMessage(store),
            Code.HEART_BEAT: Heartbeat(topics, groups, members),
            Code.UNREGISTER_CLIENT: UnregisterClient(members),
            Code.CHECK_CLIENT_CONFIG: CheckClientConfig(self.filters),
            Code.GET_CONSUMER_LIST_BY_GROUP: ConsumerList(members),
            Code.QUERY_CONSUMER_OFFSET: QueryConsumerOffset(offsets, store, int(_ram_bytes() * HOT_SHARE)),
            Code.UPDATE_CONSUMER_OFFSET: UpdateConsumerOffset(topics, groups, offsets),
            Code.GET_MAX_OFFSET: edges,
            Code.GET_MIN_OFFSET: edges,
            Code.SEARCH_OFFSET_BY_TIMESTAMP: SearchOffset(store),
            Code.GET_EARLIEST_MSG_STORETIME: EarliestStoreTime(store),
            Code.GET_CONSUMER_CONNECTION_LIST: ConsumerConnections(members),
            Code.GET_PRODUCER_CONNECTION_LIST: ProducerConnections(members),
            Code.GET_CONSUME_STATS: GetConsumeStats(topics, members, offsets, store, self.got, config.name),
            Code.GET_TOPIC_STATS_INFO: GetTopicStats(topics, store, self.put, config.name),
            Code.GET_CONSUMER_RUNNING_INFO: GetConsumerRunningInfo(members),
            Code.GET_ALL_TOPIC_CONFIG: whole.topics,
            Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: whole.groups,
            Code.GET_ALL_CONSUMER_OFFSET: whole.offsets,
            Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: whole.system_topics,
            Code.GET_TOPIC_CONFIG: GetTopicConfig(topics),
            Code.QUERY_TOPIC_CONSUME_BY_WHO: QueryTopicConsumers(members, offsets),
            Code.GET_BROKER_RUNTIME_INFO: BrokerRuntimeInfo(store, system_clock),
            Code.WATCH: WatchBroker(self.watch, states),
            Code.SCHEDULER_LEASE: self.lease,
            Code.SCHEDULER_STEP: SchedulerStep(self.scheduler),
        }

    def _notifies(self, group: str) -> bool:
        config = self.groups.table.subscription_group_table.get(group)
        return config is None or config.notify_consumer_ids_changed_enable

    def _topic_changed(self, topic: str) -> None:
        self.watch.topic_changed(topic)
        self.held_pulls.wake_queue(topic)

    def _sooner(self) -> None:
        self.scheduler.sooner()

    def _count(self, appended: Appended) -> None:
        self.put.count(appended.topic)

    async def _expire_members(self) -> None:
        self.members.close_silent(self._config.member_expiry_s)


async def _flushed(store: MessageStore) -> None:
    """Returns when who waits for the disk has been answered: a sender that hears nothing sends again."""
    flushed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(_: Exception | None) -> None:
        if not flushed.done():
            flushed.set_result(None)

    store.when_flushed(store.max_commit_log_offset, tell)
    try:
        async with asyncio.timeout(FLUSH_AT_STOP_S):
            await flushed
    except TimeoutError:
        logger.warning("the disk did not take the last messages within %g s", FLUSH_AT_STOP_S)


def _how_it_ended(report: RecoveryReport) -> str:
    if report.end == 0:
        return "new"
    return "closed cleanly before" if report.was_clean else "recovered after an abrupt end"


def _ram_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
