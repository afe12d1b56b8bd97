"""The response to GET_CONSUMER_RUNNING_INFO (307): one member's queues and statistics (`ConsumerRunningInfo`)."""

from __future__ import annotations

from typing import Any

import msgspec

from remoting.wire.bodies.document import Document, convert, read_object
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue, read_queue_map, write_queue_map
from remoting.wire.command import Body

PROP_NAMESERVER_ADDR = "PROP_NAMESERVER_ADDR"
PROP_THREADPOOL_CORE_SIZE = "PROP_THREADPOOL_CORE_SIZE"
PROP_CONSUMEORDERLY = "PROP_CONSUMEORDERLY"
PROP_CONSUME_TYPE = "PROP_CONSUME_TYPE"
PROP_CLIENT_VERSION = "PROP_CLIENT_VERSION"
PROP_CONSUMER_START_TIMESTAMP = "PROP_CONSUMER_START_TIMESTAMP"
# Ours: why nothing is pulled now (an operator, a breaker), "" while it is.
PROP_SUSPENDED = "MQADMIN_SUSPENDED"


class ProcessQueueInfo(Document, kw_only=True):
    """`ProcessQueueInfo`; times in ms since the epoch. `droped` is the real spelling on the wire."""

    cached_msg_count: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_size_in_mib: int = msgspec.field(default=0, name="cachedMsgSizeInMiB")
    commit_offset: int = 0
    droped: bool = False
    last_consume_timestamp: int = 0
    last_lock_timestamp: int = 0
    last_pull_timestamp: int = 0
    locked: bool = False
    transaction_msg_count: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_min_offset: int = 0
    try_unlock_times: int = 0


class ConsumeStatus(Document, kw_only=True):
    """Times in ms, rates a second; `consume_failed_msgs` in the last hour."""

    consume_failed_msgs: int = 0
    consume_failed_tps: float = msgspec.field(default=0.0, name="consumeFailedTPS")
    consume_ok_tps: float = msgspec.field(default=0.0, name="consumeOKTPS")
    consume_rt: float = msgspec.field(default=0.0, name="consumeRT")
    pull_rt: float = msgspec.field(default=0.0, name="pullRT")
    pull_tps: float = msgspec.field(default=0.0, name="pullTPS")


class ConsumerRunningInfo(msgspec.Struct, kw_only=True):
    """`properties` by the PROP_ names, `queues` with their process queues, `statuses` by topic."""

    properties: dict[str, str] = {}
    subscriptions: list[SubscriptionData] = []
    queues: dict[MessageQueue, ProcessQueueInfo] = {}
    statuses: dict[str, ConsumeStatus] = {}
    jstack: str | None = None


# The C++ client writes its table by hand, and cuts the last character off: the comma, or of an empty table the brace.
_EMPTY_TABLE_OF_CPP = b'"mqTable":}'


def write_running_info(info: ConsumerRunningInfo) -> bytes:
    """Encodes the response to GET_CONSUMER_RUNNING_INFO (307)."""
    fields = {
        "mqPopTable": {},
        "mqTable": write_queue_map(info.queues.items()),
        "properties": info.properties,
        "statusTable": info.statuses,
        "subscriptionSet": info.subscriptions,
        "userConsumerInfo": {},
    }
    if info.jstack is not None:
        fields["jstack"] = info.jstack
    return msgspec.json.encode(fields)


def read_running_info(body: Body) -> ConsumerRunningInfo:
    """Reads the response to GET_CONSUMER_RUNNING_INFO (307). Raises BodyError."""
    value = read_object("ConsumerRunningInfo", bytes(body).replace(_EMPTY_TABLE_OF_CPP, b'"mqTable":{}', 1))
    table = read_queue_map(value.get("mqTable"))
    return ConsumerRunningInfo(
        properties={key: str(item) for key, item in convert(dict[str, Any], value.get("properties", {})).items()},
        subscriptions=convert(list[SubscriptionData], value.get("subscriptionSet", [])),
        queues={queue: convert(ProcessQueueInfo, item) for queue, item in table.items()},
        statuses=convert(dict[str, ConsumeStatus], value.get("statusTable", {})),
        jstack=value.get("jstack"),
    )
