"""A member's answer to GET_CONSUMER_RUNNING_INFO (Java `ConsumerRunningInfo`)."""

from __future__ import annotations

from consumer.engine.offset_store import OffsetStore
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.statistics import Statistics
from consumer.engine.subscriptions import Subscriptions
from remoting.wire.bodies.running_info import (
    PROP_CLIENT_VERSION,
    PROP_CONSUME_TYPE,
    PROP_CONSUMEORDERLY,
    PROP_CONSUMER_START_TIMESTAMP,
    PROP_NAMESERVER_ADDR,
    PROP_THREADPOOL_CORE_SIZE,
    ConsumerRunningInfo,
    ProcessQueueInfo,
)

_MIB = 1024 * 1024


def running_info(
    *,
    namesrv: str,
    threads: int,
    started_ms: int,
    subscriptions: Subscriptions,
    process_queues: list[ProcessQueue],
    offsets: OffsetStore,
    statistics: Statistics,
) -> ConsumerRunningInfo:
    return ConsumerRunningInfo(
        properties={
            PROP_NAMESERVER_ADDR: namesrv,
            PROP_THREADPOOL_CORE_SIZE: str(threads),
            PROP_CONSUMEORDERLY: "false",
            PROP_CONSUME_TYPE: "CONSUME_PASSIVELY",
            # Readers look a version up by its name; this is the newest that they all know.
            PROP_CLIENT_VERSION: "V5_3_1",
            PROP_CONSUMER_START_TIMESTAMP: str(started_ms),
        },
        subscriptions=subscriptions.to_wire(),
        queues={process_queue.queue: _queue_info(process_queue, offsets) for process_queue in process_queues},
        statuses={topic: statistics.status(topic) for topic in subscriptions.topics},
    )


def _queue_info(process_queue: ProcessQueue, offsets: OffsetStore) -> ProcessQueueInfo:
    return ProcessQueueInfo(
        cached_msg_count=process_queue.message_count,
        cached_msg_min_offset=process_queue.offset_min or 0,
        cached_msg_max_offset=process_queue.offset_max or 0,
        cached_msg_size_in_mib=process_queue.body_bytes // _MIB,
        commit_offset=offsets.held_offset(process_queue.queue) or 0,
        droped=process_queue.is_dropped,
        last_pull_timestamp=process_queue.last_pull_ms,
        last_consume_timestamp=process_queue.last_consume_ms,
    )
