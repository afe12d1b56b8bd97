"""What a broker is made of, and in which order it starts and stops.

Each part is given those above it, by name; no part knows the broker. The way of a request to its processor is
`pipeline.py`; the sockets, and opening the store, are `runtime.py`'s.
"""

from __future__ import annotations

from broker.engine.config import BrokerConfig
from broker.engine.event_loop import EventLoopLagMonitor, PeriodicTask
from broker.engine.groups.consumer_groups import ConsumerGroups
from broker.engine.name_server.kv_config import KVConfig
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.sending.accepting import Accepting
from broker.engine.serving.held_pulls import HeldPulls
from broker.engine.serving.overload import Overload
from broker.engine.settings import Settings, name_server_settings
from broker.engine.stats import MIDNIGHT_CHECK_INTERVAL_S, BrokerStats
from broker.engine.store.message_store import Clock, MessageStore, system_clock
from broker.engine.topics.topic_configs import Topics
from broker.engine.watch.watch import Watch
from broker.engine.wiring.scheduling import Scheduling
from remoting.complaints import ComplaintLog


class Broker:
    """`levels`: the history of delay levels that the store was opened with. `clock`: ms since the epoch."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        settings: Settings,
        levels: LevelHistory,
        store: MessageStore,
        complaints: ComplaintLog,
        clock: Clock = system_clock,
    ) -> None:
        self.config = config
        self.settings = settings
        self.store = store
        self.clock = clock
        self.complaints = complaints
        self.watch = Watch(clock)
        self.held_pulls = HeldPulls(store.max_offset, store.properties_of, complaints)
        self.stats = BrokerStats(clock, own_topics=(config.cluster, config.name))
        self.topics = Topics(config.config_dir, config, self._topic_changed, complaints)
        self.groups = ConsumerGroups(config=config, events=self.watch, complaints=complaints, clock=clock)
        self.kv_config = KVConfig(config.config_dir, complaints)
        self.name_server_settings = name_server_settings(config, complaints)
        self.accepting = Accepting(store, levels, clock, config, self.stats, complaints)
        self.scheduling = Scheduling(
            config=config,
            settings=settings,
            levels=levels,
            store=store,
            accepting=self.accepting,
            topics=self.topics,
            groups=self.groups,
            watch=self.watch,
            stats=self.stats,
            complaints=complaints,
            clock=clock,
        )
        self.lag_monitor = EventLoopLagMonitor()
        self.overload = Overload(self.lag_monitor)
        self._rolling = PeriodicTask("daily counters", MIDNIGHT_CHECK_INTERVAL_S, self.stats.roll_daily_counters)

    def start(self) -> None:
        """Starts the parts, before clients are let in.

        Raises ConfigFileUnreadable, ConfigFileUnwritable, OSError, StoreError.
        """
        # What is configured, and how far groups have come.
        self.topics.load()
        self.groups.load(self.store.max_offset)
        self.kv_config.load()
        self.name_server_settings.load()
        # What waits for its time; the store reports what is appended from here on, to the pulls first.
        self.store.add_append_listeners(self.stats.appended, self.held_pulls.appended, self.watch.appended)
        self.scheduling.recover()
        # What runs by itself.
        self.held_pulls.start()
        self.lag_monitor.start()
        self.topics.file.start()
        self.groups.start()
        self._rolling.start()
        self.scheduling.start()

    async def stop(self) -> None:
        """Stops the parts, when all connections are closed.

        Raises OSError; the committed offsets are saved all the same.
        """
        # Forgotten, because the connections are gone.
        self.lag_monitor.stop()
        self.held_pulls.stop()
        self.watch.stop()
        # Ended, so that nothing is written any more; progress is saved while the store can say what is flushed.
        await self._rolling.stop()
        try:
            await self.scheduling.stop()
        finally:
            await self.topics.file.stop()
            # Last: transactions keep their progress as a group's.
            await self.groups.stop()

    def _topic_changed(self, topic: str) -> None:
        self.watch.topic_changed(topic)
        self.held_pulls.wake_topic(topic)
