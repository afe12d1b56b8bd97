"""A member's answer to GET_CONSUMER_RUNNING_INFO (Java `ConsumerRunningInfo`)."""

from __future__ import annotations

from collections.abc import Sequence

from consumer.engine.config import ConsumerConfig
from consumer.engine.failures import Failures
from consumer.engine.flow_control import MIB
from consumer.engine.offset_store import OffsetStore
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.queue_locks import QueueLocks
from consumer.engine.statistics import Statistics
from consumer.engine.subscriptions import Subscriptions
from remoting.allocation import strategy_name
from remoting.wire.bodies.running_info import (
    PROP_CLIENT_VERSION,
    PROP_CONSUME_TYPE,
    PROP_CONSUMEORDERLY,
    PROP_CONSUMER_START_TIMESTAMP,
    PROP_NAMESERVER_ADDR,
    PROP_SUSPENDED,
    PROP_THREADPOOL_CORE_SIZE,
    ConsumerRunningInfo,
    ProcessQueueInfo,
)
from remoting.wire.failures import LATEST_FAILURES, write_latest


def running_info(
    *,
    config: ConsumerConfig,
    started_ms: int,
    subscriptions: Subscriptions,
    process_queues: list[ProcessQueue],
    offsets: OffsetStore,
    statistics: Statistics,
    failures: Failures,
    suspended: Sequence[str] = (),
    is_orderly: bool = False,
    locks: QueueLocks | None = None,
) -> ConsumerRunningInfo:
    return ConsumerRunningInfo(
        properties={
            **_settings(config),
            PROP_NAMESERVER_ADDR: config.namesrv,
            PROP_THREADPOOL_CORE_SIZE: str(config.concurrent.threads),
            PROP_CONSUMEORDERLY: "true" if is_orderly else "false",
            PROP_CONSUME_TYPE: "CONSUME_PASSIVELY",
            # Readers look a version up by its name; this is the newest that they all know.
            PROP_CLIENT_VERSION: "V5_3_1",
            PROP_CONSUMER_START_TIMESTAMP: str(started_ms),
            PROP_SUSPENDED: "; ".join(reason or "by its program" for reason in suspended),
            LATEST_FAILURES: write_latest(failures.latest()),
        },
        subscriptions=subscriptions.to_wire(),
        queues={process_queue.queue: _queue_info(process_queue, offsets, locks) for process_queue in process_queues},
        statuses={topic: statistics.status(topic) for topic in subscriptions.topics},
    )


def _settings(config: ConsumerConfig) -> dict[str, str]:
    """Returns the settings under the names of Java's `DefaultMQPushConsumer`, as its clients tell them."""
    flow = config.flow_control
    settings: dict[str, object] = {
        "consumerGroup": config.group,
        "namespace": config.namespace,
        "messageModel": "BROADCASTING" if config.is_broadcasting else "CLUSTERING",
        "consumeFromWhere": config.start.consume_from.value,
        "consumeThreadMin": config.concurrent.threads,
        "consumeThreadMax": config.concurrent.threads,
        "consumeConcurrentlyMaxSpan": flow.span_max,
        "pullThresholdForQueue": flow.messages_for_queue,
        "pullThresholdForTopic": _or_off(flow.messages_for_topic),
        "pullThresholdSizeForQueue": flow.bytes_for_queue // MIB,
        "pullThresholdSizeForTopic": _or_off(flow.bytes_for_topic and flow.bytes_for_topic // MIB),
        "pullInterval": flow.pull_interval_ms,
        "pullBatchSize": flow.pull_batch_size,
        "maxReconsumeTimes": config.reconsume_limit,
        "suspendCurrentQueueTimeMillis": config.suspend_ms,
        "consumeTimeout": config.concurrent.consume_timeout_ms // 60_000,
        "allocateMessageQueueStrategy": strategy_name(config.strategy),
    }
    return {name: str(value) for name, value in settings.items() if value is not None}


def _or_off(value: int | None) -> int:
    return -1 if value is None else value


def _queue_info(process_queue: ProcessQueue, offsets: OffsetStore, locks: QueueLocks | None) -> ProcessQueueInfo:
    return ProcessQueueInfo(
        cached_msg_count=process_queue.message_count,
        cached_msg_min_offset=process_queue.offset_min or 0,
        cached_msg_max_offset=process_queue.offset_max or 0,
        cached_msg_size_in_mib=process_queue.body_bytes // MIB,
        commit_offset=offsets.held_offset(process_queue.queue) or 0,
        droped=process_queue.is_dropped,
        locked=locks is not None and locks.holds(process_queue.queue),
        last_pull_timestamp=process_queue.last_pull_ms,
        last_consume_timestamp=process_queue.last_consume_ms,
    )
