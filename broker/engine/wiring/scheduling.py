"""What falls due: delay levels, timers, checks of transactions, retention, and the scheduler that drives them.

The table of kinds that the scheduler knows is here; every rule lives in the part's own file. The full disk is watched
here too, though it needs no scheduler.
"""

from __future__ import annotations

import asyncio
import logging

from broker.engine.config import BrokerConfig
from broker.engine.event_loop import PeriodicTask
from broker.engine.groups.consumer_groups import ConsumerGroups
from broker.engine.processors.clean_expired_consumequeue import CleanExpiredConsumeQueue
from broker.engine.processors.delete_expired_commitlog import DeleteExpiredCommitLog
from broker.engine.processors.get_all_delay_offset import GetAllDelayOffset
from broker.engine.processors.scheduler_lease import SchedulerLease
from broker.engine.processors.scheduler_step import SchedulerStep
from broker.engine.retention.disk_space import DISK_CHECK_INTERVAL_S, DiskSpaceCheck
from broker.engine.retention.remover import Remover
from broker.engine.retention.requested import RequestedRetention
from broker.engine.retention.scheduled import KIND as RETENTION_KIND
from broker.engine.retention.scheduled import ScheduledRetention
from broker.engine.schedule.delay import KIND as DELAY_KIND
from broker.engine.schedule.delay import DelayedDelivery
from broker.engine.schedule.driver import REFUSED_PAUSE_MS, Driver
from broker.engine.schedule.due_tasks import DueTaskHandler
from broker.engine.schedule.in_process_link import InProcessLink
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.levels import parse_levels
from broker.engine.schedule.progress import ProgressFile
from broker.engine.schedule.scheduler import Scheduler
from broker.engine.schedule.timer import KIND as TIMER_KIND
from broker.engine.schedule.timer import TimerDelivery
from broker.engine.sending.accepting import Accepting
from broker.engine.serving.requests import Processors
from broker.engine.settings import Settings
from broker.engine.stats import BrokerStats
from broker.engine.store.message_store import Clock, MessageStore
from broker.engine.topics.topic_configs import Topics
from broker.engine.transactions.check_back import KIND as TRANSACTION_KIND
from broker.engine.transactions.progress import ProgressKeeper as TransactionProgress
from broker.engine.transactions.transactions import Transactions
from broker.engine.watch.watch import Watch
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.topics import PERM_READ_WRITE
from remoting.wire.codes import RequestCode as Code
from remoting.wire.names import CHECK_MAX_TIME_TOPIC

logger = logging.getLogger(__name__)


class Scheduling:
    """Callers: the broker (`recover`, `start`, `stop`) and its wiring. `clock`: ms since the epoch."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        store: MessageStore,
        settings: Settings,
        levels: LevelHistory,
        accepting: Accepting,
        topics: Topics,
        groups: ConsumerGroups,
        watch: Watch,
        stats: BrokerStats,
        complaints: ComplaintLog,
        clock: Clock,
    ) -> None:
        self._config = config
        self._store = store
        self._settings = settings
        self._levels = levels
        self._accepting = accepting
        self._topics = topics
        self.delays = DelayedDelivery(
            store, levels, ProgressFile(config.config_dir / "delayOffset.json"), self._reschedule, clock
        )
        self.timers = TimerDelivery(
            store,
            store.path,
            self._reschedule,
            clock,
            on_delivered=lambda number: stats.timers_delivered.count(None, number),
        )
        self.transactions = Transactions(
            store,
            accepting,
            groups.members,
            TransactionProgress(config.config_dir, groups.offsets),
            config,
            complaints,
            before_giving_up=self._make_check_max_time_topic,
            on_earlier_due=self._reschedule,
            clock=clock,
        )
        self._remover = Remover(store)
        retention = ScheduledRetention(store, self._remover, config, self._reschedule, clock)
        self.requested_retention = RequestedRetention(store, self._remover, config, clock)
        self._disk_space = DiskSpaceCheck(store, self._remover, config, clock)
        kinds: dict[str, DueTaskHandler] = {
            DELAY_KIND: self.delays,
            TIMER_KIND: self.timers,
            TRANSACTION_KIND: self.transactions.checks,
            RETENTION_KIND: retention,
        }
        self.scheduler = Scheduler(kinds, clock, watch.scheduler_changed, complaints)
        self.lease = SchedulerLease(self.scheduler)
        self._periodic = [
            PeriodicTask("tidy transactions", config.offsets_save_interval_s, self.transactions.tidy),
            PeriodicTask("check the disk", DISK_CHECK_INTERVAL_S, self._disk_space.check),
        ]
        self._internal_driver: asyncio.Task[None] | None = None

    def processors(self) -> Processors:
        """Returns the processors of the scheduler's private codes, of the delay levels' progress, and of retention."""
        return {
            Code.SCHEDULER_LEASE: self.lease,
            Code.SCHEDULER_STEP: SchedulerStep(self.scheduler),
            Code.GET_ALL_DELAY_OFFSET: GetAllDelayOffset(self.delays),
            Code.CLEAN_EXPIRED_CONSUMEQUEUE: CleanExpiredConsumeQueue(self.requested_retention),
            Code.DELETE_EXPIRED_COMMITLOG: DeleteExpiredCommitLog(self.requested_retention),
        }

    def recover(self) -> None:
        """Takes up what an earlier life left; from here on the store reports what is appended. Raises OSError,
        StoreError, ConfigFileUnreadable, ConfigFileUnwritable."""
        self._store.add_pins(self.delays.pinned, self.timers.pinned, self.transactions.pinned)
        self._store.add_append_listeners(self.delays.appended, self.timers.appended, self.transactions.appended)
        self.delays.recover()
        self._levels_changed()
        self._settings.listen("messageDelayLevel", self._levels_changed)
        self.timers.recover()
        self.transactions.recover()

    def start(self) -> None:
        self.scheduler.start()
        for task in self._periodic:
            task.start()
        if self._config.scheduler == "internal":
            self._internal_driver = asyncio.create_task(self._drive(), name="internal scheduler")

    async def stop(self) -> None:
        """Ends all deliveries and removals, then saves their progress. Raises OSError."""
        self.scheduler.stop()
        if self._internal_driver is not None:
            self._internal_driver.cancel()
            await asyncio.gather(self._internal_driver, return_exceptions=True)
        for task in self._periodic:
            await task.stop()
        await self.requested_retention.stop()
        await self._remover.stop()
        await self.delays.stop()
        await self.timers.stop()
        await self.transactions.stop()

    async def _drive(self) -> None:
        """Runs the internal driver; no other would take over, so what ends it must not end the deliveries."""
        while True:
            try:
                await Driver(InProcessLink(self.scheduler), "internal").run()
            except Exception:
                logger.exception("the internal scheduler failed; it goes on")
                await asyncio.sleep(REFUSED_PAUSE_MS / 1000)

    def _reschedule(self) -> None:
        self.scheduler.reschedule()

    def _levels_changed(self) -> None:
        """Takes over new delay levels; messages submitted before keep those that they were accepted with.

        Raises ConfigFileUnwritable.
        """
        self._accepting.store_submitted()
        end, low = self._store.max_commit_log_offset, self._store.min_commit_log_offset
        if self._levels.change(parse_levels(self._config.delay_levels), end=end, low=low):
            self.delays.levels_changed()

    def _make_check_max_time_topic(self) -> None:
        self._topics.create_for_send_back(CHECK_MAX_TIME_TOPIC, 1, PERM_READ_WRITE)
