"""Settings and figures of the whole broker."""

from __future__ import annotations

from broker.engine.config import BrokerConfig
from broker.engine.processors.broker_config import GetBrokerConfig, UpdateBrokerConfig
from broker.engine.processors.broker_ha_status import (
    GetBrokerEpochCache,
    GetBrokerHAStatus,
    ResetMasterFlushOffset,
)
from broker.engine.processors.get_broker_runtime_info import GetBrokerRuntimeInfo
from broker.engine.processors.view_broker_stats_data import ViewBrokerStatsData
from broker.engine.schedule.delay import DelayedDelivery
from broker.engine.schedule.timer import TimerDelivery
from broker.engine.serving.requests import Processors
from broker.engine.settings import Settings
from broker.engine.stats import BrokerStats
from broker.engine.store.message_store import Clock, MessageStore
from remoting.wire.codes import RequestCode as Code


def administration_processors(
    *,
    config: BrokerConfig,
    settings: Settings,
    store: MessageStore,
    stats: BrokerStats,
    delays: DelayedDelivery,
    timers: TimerDelivery,
    clock: Clock,
) -> Processors:
    """Returns the processors of settings and figures."""
    return {
        Code.GET_BROKER_CONFIG: GetBrokerConfig(settings),
        Code.UPDATE_BROKER_CONFIG: UpdateBrokerConfig(settings),
        Code.GET_BROKER_RUNTIME_INFO: GetBrokerRuntimeInfo(
            store=store, stats=stats, delays=delays, timers=timers, clock=clock
        ),
        Code.GET_BROKER_HA_STATUS: GetBrokerHAStatus(store),
        Code.RESET_MASTER_FLUSH_OFFSET: ResetMasterFlushOffset(),
        Code.GET_BROKER_EPOCH_CACHE: GetBrokerEpochCache(),
        Code.VIEW_BROKER_STATS_DATA: ViewBrokerStatsData(stats.put, stats.got, config.cluster),
    }
