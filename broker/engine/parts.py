"""The parts of a broker between its sockets and its store: what each is given, and who hears of what.

Composition only; every rule lives in the part's own file. Which request goes to which of them stands in
`request_codes.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from broker.engine.config import BrokerConfig
from broker.engine.day_totals import LOOK_INTERVAL_S as DAY_LOOK_INTERVAL_S
from broker.engine.day_totals import DayTotals
from broker.engine.filters.subscriptions import SubscriptionFilters
from broker.engine.groups.group_configs import Groups
from broker.engine.groups.member_calls import MemberCalls
from broker.engine.groups.members import Members
from broker.engine.groups.offsets import Offsets
from broker.engine.groups.queue_locks import QueueLocks
from broker.engine.groups.request_modes import RequestModes
from broker.engine.loops import Loop
from broker.engine.name_server.kv_config import KVConfig
from broker.engine.processors.scheduler_lease import SchedulerLease
from broker.engine.processors.watch import WatchBroker
from broker.engine.retention.disk_watch import LOOK_INTERVAL_S, DiskWatch
from broker.engine.retention.remover import Remover
from broker.engine.retention.scheduled import KIND as RETENTION_KIND
from broker.engine.retention.scheduled import ScheduledRetention
from broker.engine.schedule.carriers import Carrier
from broker.engine.schedule.delay import KIND as DELAY_KIND
from broker.engine.schedule.delay import DelayedDelivery
from broker.engine.schedule.driver import REFUSED_PAUSE_MS, Driver
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.levels import parse_levels
from broker.engine.schedule.local_link import LocalLink
from broker.engine.schedule.progress import ProgressFile
from broker.engine.schedule.scheduler import Scheduler
from broker.engine.schedule.timer import KIND as TIMER_KIND
from broker.engine.schedule.timer import TimerDelivery
from broker.engine.sending.accepting import Accepting
from broker.engine.serving.held_pulls import HeldPulls
from broker.engine.serving.overload import LoopBeat, Overload
from broker.engine.serving.requests import RequestTable
from broker.engine.settings import Settings
from broker.engine.stats import Rates
from broker.engine.store.message_store import Clock, MessageStore, system_clock
from broker.engine.store.values import Appended
from broker.engine.topics.topic_configs import Topics
from broker.engine.transactions.check_back import KIND as TRANSACTION_KIND
from broker.engine.transactions.progress import ProgressKeeper as TransactionProgress
from broker.engine.transactions.transactions import Transactions
from broker.engine.watch.watch import Watch
from broker.engine.watch.watch_states import WatchStates
from remoting.wire.bodies.topics import PERM_READ_WRITE
from remoting.wire.names import CHECK_MAX_TIME_TOPIC

logger = logging.getLogger(__name__)


class Parts:
    """`requests` is the broker's table: it tells of the ends of reads and of lost connections. `clock`: ms since
    the epoch."""

    def __init__(
        self, config: BrokerConfig, store: MessageStore, requests: RequestTable, clock: Clock = system_clock
    ) -> None:
        config_dir = config.store / "config"
        self.config = config
        self.clock = clock
        self.store = store
        self.settings = Settings(config)
        self.watch = Watch(clock)
        self.topics = Topics(config_dir, config, self._topic_changed)
        self.groups = Groups(config_dir, config, self.watch.group_changed)
        self.members = Members(clock, self.watch, self._notifies)
        self.calls = MemberCalls(self.members)
        self.locks = QueueLocks()
        self.offsets = Offsets(config_dir, self.watch.committed)
        self.request_modes = RequestModes(config_dir)
        self.kv_config = KVConfig(config_dir)
        self.held_pulls = HeldPulls(store.max_offset, store.properties_of)
        self.filters = SubscriptionFilters(has_sql=config.property_filter)
        self.put: Rates[str] = Rates()
        self.got: Rates[tuple[str, str]] = Rates()
        self.put_days = DayTotals(lambda: self.put.total, clock)
        self.got_days = DayTotals(lambda: self.got.total, clock)
        self.levels = LevelHistory(config_dir, parse_levels(config.delay_levels))
        self.accepting = Accepting(store, self.levels, clock, config)
        delay_file = ProgressFile(config_dir / "delayOffset.json")
        self.delays = DelayedDelivery(store, self.levels, delay_file, self._sooner, clock)
        self.timers = TimerDelivery(store, store.path, self._sooner, clock)
        self.transactions = Transactions(
            *(store, self.accepting, self.members, TransactionProgress(config_dir, self.offsets), config),
            before_giving_up=self._make_check_max_topic,
            on_sooner=self._sooner,
            clock=clock,
        )
        self.remover = Remover(store)
        self.retention = ScheduledRetention(store, self.remover, config, self._sooner, clock)
        self.disk_watch = DiskWatch(store, self.remover, config, clock)
        store.pins.extend([self.delays.pinned, self.timers.pinned, self.transactions.pinned])
        carriers: dict[str, Carrier] = {
            DELAY_KIND: self.delays,
            TIMER_KIND: self.timers,
            TRANSACTION_KIND: self.transactions.checks,
            RETENTION_KIND: self.retention,
        }
        self.scheduler = Scheduler(carriers, clock, self.watch.scheduler_changed)
        self.lease = SchedulerLease(self.scheduler)
        self.watch_states = WatchStates(
            *(self.watch, self.topics, self.groups, self.members, self.offsets, store),
            lambda: self.scheduler.state,
            config,
            clock,
        )
        self.watch_broker = WatchBroker(self.watch, self.watch_states)
        saving_offsets = Loop("save offsets", config.offsets_save_interval_s, self.offsets.save)
        self.offsets.on_forgotten = saving_offsets.hurry
        self._loops = [
            saving_offsets,
            Loop("write topics whole", config.offsets_save_interval_s, self.topics.file.fold_when_quiet),
            Loop("write groups whole", config.offsets_save_interval_s, self.groups.file.fold_when_quiet),
            Loop("tidy transactions", config.offsets_save_interval_s, self.transactions.tidy),
            Loop("expire members", config.member_scan_interval_s, self._expire_members),
            Loop("notice midnight", DAY_LOOK_INTERVAL_S, self._look_at_days),
            Loop("watch the disk", LOOK_INTERVAL_S, self.disk_watch.look),
        ]
        self._driving: asyncio.Task[None] | None = None
        self.beat = LoopBeat()
        self.overload = Overload(self.beat)
        requests.check = self.overload.check
        requests.after_read.append(self.accepting.store_submitted)
        requests.on_lost += [
            self.members.connection_lost,
            self.overload.forget,
            self.held_pulls.drop,
            self.watch.connection_lost,
            self.watch_broker.connection_lost,
            self.lease.closed,
        ]

    def open(self) -> None:
        """Raises ConfigFileUnreadable, OSError, StoreError."""
        self.topics.load()
        self.groups.load()
        self.offsets.load()
        self.request_modes.load()
        self.kv_config.load()
        self.offsets.bring_back(self.store.max_offset)
        self.store.on_appended += [self._count, self.held_pulls.appended, self.watch.appended]
        self.store.on_appended += [self.delays.appended, self.timers.appended, self.transactions.appended]
        self.delays.recover()
        self._levels_changed()
        self.settings.listen("messageDelayLevel", self._levels_changed)
        self.timers.recover()
        self.transactions.recover()
        self.held_pulls.start()
        self.beat.start()
        self.scheduler.start()
        for loop in self._loops:
            loop.start()
        if self.config.scheduler == "internal":
            self._driving = asyncio.create_task(self._drive(), name="internal scheduler")

    async def close(self) -> None:
        """Steps 2 to 4 of the module's note."""
        self.beat.stop()
        self.held_pulls.stop()
        self.watch.stop()
        self.scheduler.stop()
        if self._driving is not None:
            self._driving.cancel()
            await asyncio.gather(self._driving, return_exceptions=True)
        for loop in self._loops:
            await loop.stop()
        await self.remover.stop()
        self.topics.file.close()
        self.groups.file.close()
        try:
            await self.delays.stop()
            await self.timers.stop()
            await self.transactions.stop()
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

    def _notifies(self, group: str) -> bool:
        config = self.groups.table.subscription_group_table.get(group)
        return config is None or config.notify_consumer_ids_changed_enable

    def _topic_changed(self, topic: str) -> None:
        self.watch.topic_changed(topic)
        self.held_pulls.wake_queue(topic)

    def _make_check_max_topic(self) -> None:
        self.topics.create_for_send_back(CHECK_MAX_TIME_TOPIC, 1, PERM_READ_WRITE)

    def _levels_changed(self) -> None:
        """What was submitted before keeps the levels that it was accepted with. Raises ConfigFileUnwritable."""
        self.accepting.store_submitted()
        end, low = self.store.max_commit_log_offset, self.store.min_commit_log_offset
        if self.levels.change(parse_levels(self.config.delay_levels), end=end, low=low):
            self.delays.levels_changed()

    def _sooner(self) -> None:
        self.scheduler.sooner()

    def waiting_count(self) -> int:
        """Messages that wait for their time."""
        return self.delays.waiting_count + self.timers.waiting_count

    async def _look_at_days(self) -> None:
        self.put_days.look()
        self.got_days.look()

    def _count(self, appended: list[Appended]) -> None:
        for topic, number in Counter([one.topic for one in appended]).items():
            self.put.count(topic, number)

    async def _expire_members(self) -> None:
        self.members.close_silent(self.config.member_expiry_s)
        self.locks.forget_expired()
