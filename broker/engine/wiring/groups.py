"""Consumer groups and their members: heartbeats, what tools ask of them and change."""

from __future__ import annotations

from broker.engine.config import BrokerConfig
from broker.engine.groups.assignments import Assignments
from broker.engine.groups.consumer_groups import ConsumerGroups
from broker.engine.processors.clone_group_offset import CloneGroupOffset
from broker.engine.processors.connection_list import GetConsumerConnectionList, GetProducerConnectionList
from broker.engine.processors.consume_message_directly import ConsumeMessageDirectly
from broker.engine.processors.delete_subscriptiongroup import DeleteSubscriptionGroup
from broker.engine.processors.get_all_consumer_offset import GetAllConsumerOffset
from broker.engine.processors.get_all_producer_info import GetAllProducerInfo
from broker.engine.processors.get_all_subscriptiongroup_config import GetAllSubscriptionGroupConfig
from broker.engine.processors.get_broker_consume_stats import GetBrokerConsumeStats
from broker.engine.processors.get_consume_stats import GetConsumeStats
from broker.engine.processors.get_consumer_list_by_group import GetConsumerListByGroup
from broker.engine.processors.get_consumer_running_info import GetConsumerRunningInfo
from broker.engine.processors.get_subscriptiongroup_config import GetSubscriptionGroupConfig
from broker.engine.processors.heart_beat import HeartBeat
from broker.engine.processors.invoke_broker_to_get_consumer_status import InvokeBrokerToGetConsumerStatus
from broker.engine.processors.invoke_broker_to_reset_offset import InvokeBrokerToResetOffset
from broker.engine.processors.message_request_mode import GetAllMessageRequestMode, SetMessageRequestMode
from broker.engine.processors.query_assignment import QueryAssignment
from broker.engine.processors.query_consume_time_span import QueryConsumeTimeSpan
from broker.engine.processors.query_subscription_by_consumer import QuerySubscriptionByConsumer
from broker.engine.processors.query_topic_consume_by_who import QueryTopicConsumeByWho
from broker.engine.processors.query_topics_by_consumer import QueryTopicsByConsumer
from broker.engine.processors.unregister_client import UnregisterClient
from broker.engine.processors.update_and_create_subscriptiongroup import UpdateAndCreateSubscriptionGroup
from broker.engine.serving.held_pulls import HeldPulls
from broker.engine.serving.requests import Processors
from broker.engine.stats import BrokerStats
from broker.engine.store.message_store import Clock, MessageStore
from broker.engine.topics.topic_configs import Topics
from remoting.complaints import ComplaintLog
from remoting.wire.codes import RequestCode as Code


def group_processors(
    *,
    config: BrokerConfig,
    store: MessageStore,
    topics: Topics,
    groups: ConsumerGroups,
    assignments: Assignments,
    held_pulls: HeldPulls,
    stats: BrokerStats,
    complaints: ComplaintLog,
    clock: Clock,
) -> Processors:
    configs, members, calls, offsets = groups.configs, groups.members, groups.calls, groups.offsets
    update_group = UpdateAndCreateSubscriptionGroup(configs, topics, held_pulls)
    consume_stats = GetConsumeStats(
        topics=topics, members=members, offsets=offsets, store=store, got=stats.got, broker_name=config.name
    )
    return {
        Code.HEART_BEAT: HeartBeat(topics, configs, members),
        Code.UNREGISTER_CLIENT: UnregisterClient(members),
        Code.GET_CONSUMER_LIST_BY_GROUP: GetConsumerListByGroup(members),
        Code.GET_CONSUMER_CONNECTION_LIST: GetConsumerConnectionList(members),
        Code.GET_PRODUCER_CONNECTION_LIST: GetProducerConnectionList(members),
        Code.GET_ALL_PRODUCER_INFO: GetAllProducerInfo(members),
        # What the broker asks of a member for a tool.
        Code.GET_CONSUMER_RUNNING_INFO: GetConsumerRunningInfo(calls),
        Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: InvokeBrokerToGetConsumerStatus(calls, members, complaints),
        Code.CONSUME_MESSAGE_DIRECTLY: ConsumeMessageDirectly(
            calls=calls, topics=topics, groups=configs, store=store, broker_name=config.name
        ),
        # Who reads which queues.
        Code.QUERY_ASSIGNMENT: QueryAssignment(topics, members, config.name),
        Code.SET_MESSAGE_REQUEST_MODE: SetMessageRequestMode(topics, configs, groups.request_modes),
        Code.GET_ALL_MESSAGE_REQUEST_MODE: GetAllMessageRequestMode(groups.request_modes),
        Code.QUERY_TOPIC_CONSUME_BY_WHO: QueryTopicConsumeByWho(members, offsets),
        Code.QUERY_TOPICS_BY_CONSUMER: QueryTopicsByConsumer(offsets, config.address),
        Code.QUERY_SUBSCRIPTION_BY_CONSUMER: QuerySubscriptionByConsumer(members),
        # Settings.
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: update_group,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: update_group.put_list,
        Code.DELETE_SUBSCRIPTIONGROUP: DeleteSubscriptionGroup(configs, offsets, assignments, held_pulls),
        Code.GET_SUBSCRIPTIONGROUP_CONFIG: GetSubscriptionGroupConfig(configs),
        Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: GetAllSubscriptionGroupConfig(configs),
        # Progress.
        Code.GET_ALL_CONSUMER_OFFSET: GetAllConsumerOffset(offsets),
        Code.GET_CONSUME_STATS: consume_stats,
        Code.GET_BROKER_CONSUME_STATS: GetBrokerConsumeStats(topics, configs, consume_stats, config.address),
        Code.QUERY_CONSUME_TIME_SPAN: QueryConsumeTimeSpan(
            topics=topics, offsets=offsets, store=store, clock=clock, broker_name=config.name
        ),
        Code.CLONE_GROUP_OFFSET: CloneGroupOffset(topics, members, offsets),
        Code.INVOKE_BROKER_TO_RESET_OFFSET: InvokeBrokerToResetOffset(
            topics=topics,
            groups=configs,
            members=members,
            offsets=offsets,
            store=store,
            held_pulls=held_pulls,
            config=config,
        ),
    }
