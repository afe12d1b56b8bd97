"""The name server's port: routes, topic lists, values of tools, and what brokers would register."""

from __future__ import annotations

from broker.engine.config import BrokerConfig
from broker.engine.name_server.kv_config import KVConfig
from broker.engine.name_server.kv_config_requests import KVConfigRequests
from broker.engine.name_server.registration import Registration
from broker.engine.name_server.routes import Routes
from broker.engine.processors.namesrv_config import GetNamesrvConfig, UpdateNamesrvConfig
from broker.engine.serving.requests import Processors
from broker.engine.settings import Settings
from broker.engine.topics.topic_configs import Topics
from remoting.wire.codes import RequestCode as Code


def name_server_processors(
    *, config: BrokerConfig, settings: Settings, topics: Topics, kv_config: KVConfig
) -> Processors:
    routes = Routes(topics, kv_config, config)
    values = KVConfigRequests(kv_config)
    registration = Registration(config)
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
        Code.GET_NAMESRV_CONFIG: GetNamesrvConfig(settings),
        Code.UPDATE_NAMESRV_CONFIG: UpdateNamesrvConfig(settings),
    }
