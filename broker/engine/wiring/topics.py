"""Topics as tools see and change them."""

from __future__ import annotations

from broker.engine.config import BrokerConfig
from broker.engine.groups.assignments import Assignments
from broker.engine.groups.consumer_groups import ConsumerGroups
from broker.engine.processors.clean_unused_topic import CleanUnusedTopic
from broker.engine.processors.delete_topic_in_broker import DeleteTopicInBroker
from broker.engine.processors.get_all_topic_config import GetAllTopicConfig, GetSystemTopicListFromBroker
from broker.engine.processors.get_topic_config import GetTopicConfig
from broker.engine.processors.get_topic_stats_info import GetTopicStatsInfo
from broker.engine.processors.update_and_create_topic import UpdateAndCreateTopic, UpdateAndCreateTopicList
from broker.engine.serving.requests import Processors
from broker.engine.stats import BrokerStats
from broker.engine.store.message_store import MessageStore
from broker.engine.topics.topic_configs import Topics
from remoting.wire.codes import RequestCode as Code


def topic_processors(
    *,
    config: BrokerConfig,
    store: MessageStore,
    topics: Topics,
    groups: ConsumerGroups,
    assignments: Assignments,
    stats: BrokerStats,
) -> Processors:
    return {
        Code.UPDATE_AND_CREATE_TOPIC: UpdateAndCreateTopic(topics),
        Code.UPDATE_AND_CREATE_TOPIC_LIST: UpdateAndCreateTopicList(topics),
        Code.DELETE_TOPIC_IN_BROKER: DeleteTopicInBroker(topics, groups.offsets, assignments, store),
        Code.CLEAN_UNUSED_TOPIC: CleanUnusedTopic(topics, store),
        Code.GET_TOPIC_CONFIG: GetTopicConfig(topics),
        Code.GET_ALL_TOPIC_CONFIG: GetAllTopicConfig(topics),
        Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: GetSystemTopicListFromBroker(topics),
        Code.GET_TOPIC_STATS_INFO: GetTopicStatsInfo(topics, store, stats.put, config.name),
    }
