"""Makes a consumer span of each call of a listener, as OpenTelemetry's conventions for messaging have it.

The span's parent is what the producer put into the message's properties: `traceparent`, as the process's propagator
writes it. `trace_properties()` makes those for a send:

    producer.send("orders", order, properties=trace_properties())

Needs the extra `mqadmin[opentelemetry]`; exporter and sampling are the project's own set-up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.decorators import sync_and_async_middleware

from consumer.engine.message import Message
from consumer.middleware.chain import Call, Consume, messages_of

try:
    from opentelemetry import propagate, trace
except ImportError as error:
    raise ImproperlyConfigured(f"{__name__} needs the extra mqadmin[opentelemetry]: {error}") from error


@sync_and_async_middleware
def tracing(consume: Consume) -> Call:
    tracer = trace.get_tracer("mqadmin.consumer")
    of = consume.listener
    common = {
        "messaging.system": "rocketmq",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": of.topic,
        "messaging.consumer.group.name": of.group,
        "code.function.name": of.name,
    }

    @contextmanager
    def span(messages: list[Message]) -> Iterator[None]:
        parents = [propagate.extract(message.properties) for message in messages]
        links = [trace.Link(trace.get_current_span(parent).get_span_context()) for parent in parents]
        is_single = len(messages) == 1
        with tracer.start_as_current_span(
            f"process {of.topic}",
            context=parents[0] if is_single else None,
            kind=trace.SpanKind.CONSUMER,
            attributes={**common, **(_of_message(messages[0]) if is_single else _of_batch(messages))},
            links=None if is_single else [link for link in links if link.context.is_valid],
        ):
            yield

    def middleware(message: Any) -> Any:
        with span(messages_of(message)):
            return consume(message)

    async def async_middleware(message: Any) -> Any:
        with span(messages_of(message)):
            return await consume(message)

    return async_middleware if consume.is_async else middleware


def trace_properties() -> dict[str, str]:
    """Returns the properties that carry the current span to the consumer; empty without one."""
    properties: dict[str, str] = {}
    propagate.inject(properties)
    return properties


def _of_message(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {
        "messaging.message.id": message.id,
        "messaging.message.body.size": len(message.body),
        "messaging.rocketmq.message.tag": message.tags,
        "messaging.rocketmq.message.keys": message.keys,
        "messaging.rocketmq.message.reconsume_times": message.reconsume_times,
    }
    if message.queue is not None:
        found["messaging.destination.partition.id"] = f"{message.queue.broker_name}-{message.queue.queue_id}"
    return {name: value for name, value in found.items() if value not in (None, ())}


def _of_batch(messages: list[Message]) -> dict[str, Any]:
    return {"messaging.batch.message_count": len(messages)}
