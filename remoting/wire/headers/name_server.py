"""Headers of the name server's own requests: 100, 101, 102, 205, 216, 219, 327, 901."""

from __future__ import annotations

from remoting.wire.headers.typed import Header, Int32


class PutKVConfigHeader(Header, kw_only=True):
    """100 PUT_KV_CONFIG. Without namespace or key it is refused with RocketMQ's own text."""

    namespace: str | None = None
    key: str | None = None
    value: str = ""


class KVConfigHeader(Header, kw_only=True):
    """101 GET_KV_CONFIG, 102 DELETE_KV_CONFIG."""

    namespace: str = ""
    key: str = ""


class NamespaceHeader(Header, kw_only=True):
    """219 GET_KVLIST_BY_NAMESPACE."""

    namespace: str = ""


class DeleteTopicInNameServerHeader(Header, kw_only=True):
    """216 DELETE_TOPIC_IN_NAMESRV. With `cluster_name` only that cluster's brokers are removed from the route."""

    topic: str
    cluster_name: str | None = None


class BrokerNameHeader(Header, kw_only=True):
    """205 WIPE_WRITE_PERM_OF_BROKER, 327 ADD_WRITE_PERM_OF_BROKER."""

    broker_name: str


class KVConfigResponseHeader(Header, kw_only=True):
    """The response to 101."""

    value: str | None = None


class WipedTopicsHeader(Header, kw_only=True):
    """The response to 205: how many topics lost the permission to write."""

    wipe_topic_count: Int32


class AddedTopicsHeader(Header, kw_only=True):
    """The response to 327: how many topics have the permission to write again."""

    add_topic_count: Int32


class BrokerMemberGroupHeader(Header, kw_only=True):
    """901 GET_BROKER_MEMBER_GROUP."""

    cluster_name: str
    broker_name: str
