"""Which request code goes to which processor, by subject: the broker's ports and the name server's.

A code that is not here is answered with REQUEST_CODE_NOT_SUPPORTED.
"""

from __future__ import annotations

import os

from broker.engine.name_server.kv_config_requests import KVConfigRequests
from broker.engine.name_server.registration import Registration
from broker.engine.name_server.routes import Routes
from broker.engine.parts import Parts
from broker.engine.processors.assignment import QueryAssignment, RequestModeList, SetRequestMode
from broker.engine.processors.broker_config import GetBrokerConfig, UpdateBrokerConfig
from broker.engine.processors.check_client_config import CheckClientConfig
from broker.engine.processors.client_connections import AllProducers, ConsumerConnections, ProducerConnections
from broker.engine.processors.clone_group_offset import CloneOffsets
from broker.engine.processors.consume_message_directly import ConsumeDirectly
from broker.engine.processors.consumer_offset import QueryConsumerOffset, UpdateConsumerOffset
from broker.engine.processors.consumer_send_msg_back import SendMessageBack
from broker.engine.processors.end_transaction import EndTransaction
from broker.engine.processors.get_broker_consume_stats import GetBrokerConsumeStats
from broker.engine.processors.get_broker_runtime_info import BrokerRuntimeInfo
from broker.engine.processors.get_consume_stats import GetConsumeStats
from broker.engine.processors.get_consumer_list_by_group import ConsumerList
from broker.engine.processors.get_consumer_running_info import GetConsumerRunningInfo
from broker.engine.processors.get_topic_stats_info import GetTopicStats
from broker.engine.processors.group_config import DeleteGroup, GetGroupConfig, UpdateGroup
from broker.engine.processors.heart_beat import Heartbeat
from broker.engine.processors.invoke_broker_to_get_consumer_status import ConsumerStatus
from broker.engine.processors.invoke_broker_to_reset_offset import ResetOffset
from broker.engine.processors.lock_batch_mq import LockQueues, UnlockQueues
from broker.engine.processors.pull_message import PullMessage
from broker.engine.processors.query_consume_queue import QueryConsumeQueue
from broker.engine.processors.query_consume_time_span import ConsumeTimeSpan
from broker.engine.processors.query_message import QueryMessage
from broker.engine.processors.queue_offset import EarliestStoreTime, QueueOffset, SearchOffset
from broker.engine.processors.recall_message import RecallMessage
from broker.engine.processors.resume_check_half_message import ResumeCheck
from broker.engine.processors.scheduler_step import SchedulerStep
from broker.engine.processors.send_message import SendMessage
from broker.engine.processors.send_reply_message import SendReply
from broker.engine.processors.tables import Tables
from broker.engine.processors.topic_config import DeleteTopic, GetTopicConfig, UpdateTopic, UpdateTopics
from broker.engine.processors.unregister_client import UnregisterClient
from broker.engine.processors.view_broker_stats_data import ViewBrokerStats
from broker.engine.processors.view_message_by_id import ViewMessage
from broker.engine.processors.who_consumes import WhoConsumes
from broker.engine.sending.send_target import SendTarget
from broker.engine.serving.requests import Processor
from remoting.wire.codes import RequestCode as Code
from remoting.wire.message_id import UniqueKeyFactory

# RocketMQ's `accessMessageInMemoryMaxRatio`: so much of the RAM counts as "in memory".
HOT_SHARE = 0.4


def broker_processors(parts: Parts) -> dict[int, Processor]:
    """Every code that the broker's port answers."""
    subjects = (_sending, _consuming, _clients, _lookups, _admin, _changes_by_tools, _reading, _own)
    return {code: processor for subject in subjects for code, processor in subject(parts).items()}


def name_server_processors(parts: Parts) -> dict[int, Processor]:
    routes = Routes(parts.topics, parts.config)
    values = KVConfigRequests(parts.kv_config)
    registration = Registration(parts.config)
    return {
        Code.GET_ROUTEINFO_BY_TOPIC: routes.of_topic,
        Code.GET_BROKER_CLUSTER_INFO: routes.of_cluster,
        Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: routes.all_topics,
        Code.GET_TOPICS_BY_CLUSTER: routes.topics_of_cluster,
        Code.GET_SYSTEM_TOPIC_LIST_FROM_NS: routes.system_topics,
        Code.GET_UNIT_TOPIC_LIST: routes.unit_topics,
        Code.GET_HAS_UNIT_SUB_TOPIC_LIST: routes.unit_subscribed_topics,
        Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: routes.unit_subscribed_topics_elsewhere,
        Code.WIPE_WRITE_PERM_OF_BROKER: routes.wipe_write_permission,
        Code.ADD_WRITE_PERM_OF_BROKER: routes.add_write_permission,
        Code.PUT_KV_CONFIG: values.put,
        Code.GET_KV_CONFIG: values.get,
        Code.DELETE_KV_CONFIG: values.delete,
        Code.GET_KVLIST_BY_NAMESPACE: values.of_namespace,
        Code.REGISTER_BROKER: registration.refuse_broker,
        Code.REGISTER_TOPIC_IN_NAMESRV: registration.refuse_broker,
        Code.QUERY_DATA_VERSION: registration.refuse_broker,
        Code.BROKER_HEARTBEAT: registration.refuse_broker,
        Code.UNREGISTER_BROKER: registration.accept,
        Code.DELETE_TOPIC_IN_NAMESRV: registration.accept,
        Code.GET_BROKER_MEMBER_GROUP: registration.members,
        Code.GET_NAMESRV_CONFIG: registration.settings,
        Code.UPDATE_NAMESRV_CONFIG: registration.refuse_settings,
    }


def _sending(parts: Parts) -> dict[int, Processor]:
    send = SendMessage(
        *(parts.topics, parts.groups, parts.accepting, UniqueKeyFactory()),
        *(parts.config, parts.locks, parts.transactions),
    )
    reply = SendReply(SendTarget(parts.topics, parts.config), parts.members, parts.accepting, parts.config, parts.clock)
    return {
        Code.SEND_REPLY_MESSAGE: reply,
        Code.SEND_REPLY_MESSAGE_V2: reply,
        Code.SEND_MESSAGE: send,
        Code.SEND_MESSAGE_V2: send,
        Code.SEND_BATCH_MESSAGE: send,
        Code.RECALL_MESSAGE: RecallMessage(parts.topics, parts.accepting, parts.config, parts.clock),
        Code.RESUME_CHECK_HALF_MESSAGE: ResumeCheck(parts.store, parts.transactions),
        Code.END_TRANSACTION: EndTransaction(parts.store, parts.transactions, parts.config, parts.clock),
        Code.CONSUMER_SEND_MSG_BACK: SendMessageBack(
            parts.topics, parts.groups, parts.store, parts.accepting, parts.config
        ),
    }


def _consuming(parts: Parts) -> dict[int, Processor]:
    pull = PullMessage(
        *(parts.topics, parts.groups, parts.members, parts.offsets, parts.store),
        *(parts.held_pulls, parts.watch, parts.got, parts.filters, parts.config),
    )
    return {
        Code.PULL_MESSAGE: pull,
        Code.LITE_PULL_MESSAGE: pull,
        Code.QUERY_CONSUMER_OFFSET: QueryConsumerOffset(parts.offsets, parts.store, int(_ram_bytes() * HOT_SHARE)),
        Code.UPDATE_CONSUMER_OFFSET: UpdateConsumerOffset(parts.topics, parts.groups, parts.offsets),
    }


def _clients(parts: Parts) -> dict[int, Processor]:
    members = parts.members
    return {
        Code.HEART_BEAT: Heartbeat(parts.topics, parts.groups, members),
        Code.UNREGISTER_CLIENT: UnregisterClient(members),
        Code.CHECK_CLIENT_CONFIG: CheckClientConfig(parts.filters),
        Code.GET_CONSUMER_LIST_BY_GROUP: ConsumerList(members),
        Code.QUERY_ASSIGNMENT: QueryAssignment(parts.topics, members, parts.config.name),
        Code.SET_MESSAGE_REQUEST_MODE: SetRequestMode(parts.topics, parts.groups, parts.request_modes),
        Code.GET_ALL_MESSAGE_REQUEST_MODE: RequestModeList(parts.request_modes),
        Code.GET_CONSUMER_CONNECTION_LIST: ConsumerConnections(members),
        Code.GET_PRODUCER_CONNECTION_LIST: ProducerConnections(members),
        Code.GET_ALL_PRODUCER_INFO: AllProducers(members),
        Code.GET_CONSUMER_RUNNING_INFO: GetConsumerRunningInfo(parts.calls),
        Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: ConsumerStatus(parts.calls, members),
        Code.CONSUME_MESSAGE_DIRECTLY: ConsumeDirectly(
            parts.calls, parts.topics, parts.groups, parts.store, parts.config.name
        ),
        Code.LOCK_BATCH_MQ: LockQueues(parts.locks),
        Code.UNLOCK_BATCH_MQ: UnlockQueues(parts.locks),
    }


def _lookups(parts: Parts) -> dict[int, Processor]:
    edges = QueueOffset(parts.store)
    return {
        Code.GET_MAX_OFFSET: edges,
        Code.GET_MIN_OFFSET: edges,
        Code.SEARCH_OFFSET_BY_TIMESTAMP: SearchOffset(parts.store),
        Code.GET_EARLIEST_MSG_STORETIME: EarliestStoreTime(parts.store),
        Code.VIEW_MESSAGE_BY_ID: ViewMessage(parts.store),
        Code.QUERY_MESSAGE: QueryMessage(parts.store),
        Code.QUERY_CONSUME_QUEUE: QueryConsumeQueue(parts.members, parts.store),
    }


def _admin(parts: Parts) -> dict[int, Processor]:
    topics, members, offsets, store = parts.topics, parts.members, parts.offsets, parts.store
    whole = Tables(topics, parts.groups, offsets, parts.delays)
    consume_stats = GetConsumeStats(topics, members, offsets, store, parts.got, parts.config.name)
    return {
        Code.GET_CONSUME_STATS: consume_stats,
        Code.GET_TOPIC_STATS_INFO: GetTopicStats(topics, store, parts.put, parts.config.name),
        Code.GET_ALL_TOPIC_CONFIG: whole.topics,
        Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: whole.groups,
        Code.GET_ALL_CONSUMER_OFFSET: whole.offsets,
        Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: whole.system_topics,
        Code.GET_TOPIC_CONFIG: GetTopicConfig(topics),
        Code.GET_BROKER_CONFIG: GetBrokerConfig(parts.settings),
        Code.UPDATE_BROKER_CONFIG: UpdateBrokerConfig(parts.settings),
        Code.GET_BROKER_RUNTIME_INFO: BrokerRuntimeInfo(
            *(store, (parts.put, parts.put_days), (parts.got, parts.got_days)), parts.waiting_count, parts.clock
        ),
        Code.VIEW_BROKER_STATS_DATA: ViewBrokerStats(parts.put, parts.got, parts.config.cluster),
        Code.GET_BROKER_CONSUME_STATS: GetBrokerConsumeStats(topics, parts.groups, consume_stats, parts.config.address),
        Code.GET_ALL_DELAY_OFFSET: whole.delays,
    }


def _changes_by_tools(parts: Parts) -> dict[int, Processor]:
    topics, groups, offsets, store = parts.topics, parts.groups, parts.offsets, parts.store
    update_group = UpdateGroup(groups, topics, parts.held_pulls)
    return {
        Code.UPDATE_AND_CREATE_TOPIC: UpdateTopic(topics),
        Code.UPDATE_AND_CREATE_TOPIC_LIST: UpdateTopics(topics),
        Code.DELETE_TOPIC_IN_BROKER: DeleteTopic(topics, offsets, parts.watch.assignments, store),
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: update_group,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: update_group.several,
        Code.DELETE_SUBSCRIPTIONGROUP: DeleteGroup(groups, offsets, parts.watch.assignments, parts.held_pulls),
        Code.GET_SUBSCRIPTIONGROUP_CONFIG: GetGroupConfig(groups),
        Code.CLONE_GROUP_OFFSET: CloneOffsets(topics, parts.members, offsets),
        Code.INVOKE_BROKER_TO_RESET_OFFSET: ResetOffset(
            *(topics, groups, parts.members, offsets, store, parts.held_pulls, parts.config)
        ),
    }


def _reading(parts: Parts) -> dict[int, Processor]:
    """Who reads what, and how far."""
    who = WhoConsumes(parts.members, parts.offsets, parts.config.address)
    return {
        Code.QUERY_TOPIC_CONSUME_BY_WHO: who.groups_of_topic,
        Code.QUERY_TOPICS_BY_CONSUMER: who.topics_of_group,
        Code.QUERY_SUBSCRIPTION_BY_CONSUMER: who.subscription,
        Code.QUERY_CONSUME_TIME_SPAN: ConsumeTimeSpan(
            *(parts.topics, parts.offsets, parts.store, parts.clock, parts.config.name)
        ),
    }


def _own(parts: Parts) -> dict[int, Processor]:
    """The private codes."""
    return {
        Code.WATCH: parts.watch_broker,
        Code.SCHEDULER_LEASE: parts.lease,
        Code.SCHEDULER_STEP: SchedulerStep(parts.scheduler),
    }


def _ram_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
