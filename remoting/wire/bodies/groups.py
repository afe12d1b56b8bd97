"""Groups as brokers know them: 38, 200, 201, 203, 204, 300, 328, 345, and config/subscriptionGroup.json."""

from __future__ import annotations

from typing import Any

import msgspec

from remoting.wire.bodies.document import Document
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.topics import DataVersion


class SubscriptionGroupConfig(Document, kw_only=True):
    """Defaults are RocketMQ's."""

    attributes: dict[str, str] = {}  # noqa: RUF012 - msgspec copies a default per instance
    broker_id: int = 0
    consume_broadcast_enable: bool = True
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_message_orderly: bool = False
    consume_timeout_minute: int = 15
    group_name: str
    group_retry_policy: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "CUSTOMIZED"})
    group_sys_flag: int = 0
    notify_consumer_ids_changed_enable: bool = True
    retry_max_times: int = 16
    retry_queue_nums: int = 1
    which_broker_when_consume_slowly: int = 1


class SubscriptionGroupTable(Document, kw_only=True):
    """201 GET_ALL_SUBSCRIPTIONGROUP_CONFIG, and config/subscriptionGroup.json."""

    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    forbidden_table: dict[str, dict[str, int]] = {}  # noqa: RUF012
    subscription_group_table: dict[str, SubscriptionGroupConfig] = {}  # noqa: RUF012


class SubscriptionGroupList(Document, kw_only=True):
    """`SubscriptionGroupList`, the body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225)."""

    group_config_list: list[SubscriptionGroupConfig]


class ConsumerIds(Document, kw_only=True):
    """38 GET_CONSUMER_LIST_BY_GROUP."""

    consumer_id_list: list[str] = []  # noqa: RUF012


class ClientConnection(Document, kw_only=True):
    """`Connection` in RocketMQ: one client of a group; `client_addr` "ip:port"."""

    client_addr: str = ""
    client_id: str
    language: str = "OTHER"
    version: int = 0


class ConsumerConnection(Document, kw_only=True):
    """203: the members, and the one subscription table that the broker keeps for the whole group."""

    connection_set: list[ClientConnection] = []  # noqa: RUF012
    consume_from_where: str | None = None
    consume_type: str | None = None
    message_model: str | None = None
    subscription_table: dict[str, SubscriptionData] = {}  # noqa: RUF012


class ProducerConnection(Document, kw_only=True):
    """204."""

    connection_set: list[ClientConnection] = []  # noqa: RUF012


class GroupList(Document, kw_only=True):
    """300 QUERY_TOPIC_CONSUME_BY_WHO."""

    group_list: list[str] = []  # noqa: RUF012


class GroupSubscription(Document, kw_only=True):
    """345 QUERY_SUBSCRIPTION_BY_CONSUMER."""

    group: str
    topic: str | None = None
    subscription_data: SubscriptionData | None = None


class ProducerInfo(Document, kw_only=True):
    """One client of 328; `remote_ip` "/ip:port" as Java writes an address, times in ms."""

    client_id: str
    language: str = "OTHER"
    last_update_timestamp: int = 0
    remote_ip: str = msgspec.field(default="", name="remoteIP")
    version: int = 0


class ProducerTable(Document, kw_only=True):
    """328 GET_ALL_PRODUCER_INFO: clients by producer group."""

    data: dict[str, list[ProducerInfo]] = {}  # noqa: RUF012
