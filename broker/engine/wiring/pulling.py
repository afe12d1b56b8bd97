"""Pulls, commits of offsets, and the locks of ordered consumption."""

from __future__ import annotations

import os

from broker.engine.config import BrokerConfig
from broker.engine.filters.subscriptions import SubscriptionFilters
from broker.engine.groups.consumer_groups import ConsumerGroups
from broker.engine.groups.newer_subscriptions import NewerSubscriptions
from broker.engine.processors.check_client_config import CheckClientConfig
from broker.engine.processors.consumer_offset import QueryConsumerOffset, UpdateConsumerOffset
from broker.engine.processors.lock_batch_mq import LockBatchMQ, UnlockBatchMQ
from broker.engine.processors.pull_message import PullMessage
from broker.engine.serving.held_pulls import HeldPulls
from broker.engine.serving.requests import Processors
from broker.engine.stats import BrokerStats
from broker.engine.store.message_store import MessageStore
from broker.engine.topics.topic_configs import Topics
from broker.engine.watch.watch import Watch
from remoting.complaints import ComplaintLog
from remoting.wire.codes import RequestCode as Code

# RocketMQ's `accessMessageInMemoryMaxRatio`: so much of the RAM counts as "in memory".
HOT_SHARE = 0.4


def pulling_processors(
    *,
    config: BrokerConfig,
    store: MessageStore,
    topics: Topics,
    groups: ConsumerGroups,
    held_pulls: HeldPulls,
    stats: BrokerStats,
    watch: Watch,
    complaints: ComplaintLog,
) -> Processors:
    filters = SubscriptionFilters(has_sql=config.property_filter)
    pull = PullMessage(
        topics=topics,
        groups=groups.configs,
        members=groups.members,
        offsets=groups.offsets,
        store=store,
        held_pulls=held_pulls,
        watch=watch,
        stats=stats,
        filters=filters,
        newer=NewerSubscriptions(groups.members, groups.calls, complaints),
        config=config,
        complaints=complaints,
    )
    return {
        Code.PULL_MESSAGE: pull,
        Code.LITE_PULL_MESSAGE: pull,
        Code.CHECK_CLIENT_CONFIG: CheckClientConfig(filters),
        Code.QUERY_CONSUMER_OFFSET: QueryConsumerOffset(groups.offsets, store, hot_bytes=int(_ram_bytes() * HOT_SHARE)),
        Code.UPDATE_CONSUMER_OFFSET: UpdateConsumerOffset(topics, groups.configs, groups.offsets),
        Code.LOCK_BATCH_MQ: LockBatchMQ(groups.locks),
        Code.UNLOCK_BATCH_MQ: UnlockBatchMQ(groups.locks),
    }


def _ram_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
