"""Makes a consumer of a group's declared listeners: the one place where Django and the engine meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db import connections

from consumer.conf import keeps_failure_texts, middleware_paths, offsets_folder
from consumer.engine.config import ConsumerConfig
from consumer.engine.consume_concurrently import ConcurrentLimits
from consumer.engine.flow_control import MIB, FlowControl
from consumer.engine.listening import Listener
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from consumer.engine.statistics import RecordDelivery
from consumer.failures.recorder import FailureRecorder
from consumer.inbox import database_of, once_per_message
from consumer.listener import GroupSpec, function_name
from consumer.middleware.chain import ListenerInfo, Middleware, load, wrapped
from consumer.middleware.time_limit import limited
from consumer.options import GroupOptions


def make_consumer(spec: GroupSpec, namesrv: str, *, record_delivery: RecordDelivery | None = None) -> PushConsumer:
    config = ConsumerConfig(
        namesrv=namesrv,
        group=spec.group,
        max_reconsume_times=spec.options["max_reconsume_times"],
        strategy=spec.options["strategy"],
        start=start_rule(spec.options["consume_from"]),
        concurrent=ConcurrentLimits(
            threads=spec.options["threads"], consume_timeout_ms=spec.options["consume_timeout_s"] * 1000
        ),
        is_orderly=spec.options["orderly"],
        suspend_ms=spec.options["suspend_ms"],
        is_broadcasting=spec.options["broadcasting"],
        offsets_folder=offsets_folder() / (spec.cluster or "default") if spec.options["broadcasting"] else None,
        trace=spec.options["trace"],
        trace_topic=spec.options["trace_topic"],
        namespace=spec.options["namespace"],
        flow_control=_flow_control(spec.options),
        keeps_failure_texts=keeps_failure_texts(),
        breaker=spec.options["breaker"],
    )
    chain = load(middleware_paths())
    listeners = {topic: with_middleware(spec, listener, chain) for topic, listener in spec.listeners.items()}
    return PushConsumer(
        config,
        listeners,
        at_thread_end=connections.close_all,
        queues_changed=spec.options["queues_changed"],
        record_failure=FailureRecorder(spec.cluster, spec.group) if config.keeps_failure_texts else None,
        record_delivery=record_delivery,
    )


def _flow_control(options: GroupOptions) -> FlowControl:
    size_for_topic_mib = options["pull_threshold_size_for_topic"]
    return FlowControl(
        messages_for_queue=options["pull_threshold_for_queue"],
        messages_for_topic=options["pull_threshold_for_topic"],
        bytes_for_queue=options["pull_threshold_size_for_queue"] * MIB,
        bytes_for_topic=None if size_for_topic_mib is None else size_for_topic_mib * MIB,
        span_max=options["consume_concurrently_max_span"],
        pull_batch_size=options["pull_batch_size"],
        pull_interval_ms=options["pull_interval_ms"],
    )


def with_middleware(spec: GroupSpec, listener: Listener, chain: Sequence[Middleware]) -> Listener:
    """Returns the listener as it is called for each message. Raises ImproperlyConfigured."""
    options = spec.listener_options[listener.topic]
    info = ListenerInfo(
        group=spec.group,
        cluster=spec.cluster,
        topic=listener.topic,
        name=function_name(listener.call),
        is_async=listener.is_async,
    )
    call = listener.call
    if options["once"] is not False:
        call = once_per_message(call, spec.key, database_of(options["once"]))
    if (time_limit_s := options["time_limit_s"]) is not None:
        call = limited(call, time_limit_s, info.name)
    return replace(listener, call=wrapped(call, info, chain))
