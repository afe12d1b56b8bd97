"""Counts and times messages in the process's own Prometheus registry, which the project shows already.

`prometheus_client.REGISTRY` is the default one: with `PROMETHEUS_MULTIPROC_DIR` the figures of all worker processes
come together there, without it each process has its own. Needs the package prometheus-client.
"""

from __future__ import annotations

import time
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.decorators import sync_and_async_middleware

from consumer.engine.outcomes import Later
from consumer.middleware.chain import Call, Consume, messages_of

try:
    from prometheus_client import Counter, Gauge, Histogram
except ImportError as error:
    raise ImproperlyConfigured(f"{__name__} needs the package prometheus-client: {error}") from error

_LABELS = ("cluster", "group", "topic")
# `outcome`: consumed, later (the listener raised Later), failed (anything else).
MESSAGES = Counter("mq_listener_messages", "Messages that a listener was called with.", (*_LABELS, "outcome"))
SECONDS = Histogram("mq_listener_seconds", "Duration of a listener's calls.", _LABELS)
RUNNING = Gauge("mq_listener_running", "Calls of a listener that run now.", _LABELS, multiprocess_mode="livesum")
# By the clocks of producer and consumer.
AGE_SECONDS = Histogram(
    "mq_listener_message_age_seconds",
    "Age of a message when its listener was called, since its producer made it.",
    _LABELS,
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 7200),
)


@sync_and_async_middleware
def metrics(consume: Consume) -> Call:
    of = consume.listener
    labels = (of.cluster, of.group, of.topic)
    seconds, running, age = SECONDS.labels(*labels), RUNNING.labels(*labels), AGE_SECONDS.labels(*labels)
    outcomes = {outcome: MESSAGES.labels(*labels, outcome) for outcome in ("consumed", "later", "failed")}

    def begin(argument: Any) -> float:
        running.inc()
        now_ms = time.time() * 1000
        for message in messages_of(argument):
            age.observe(max(0.0, now_ms - message.born_ms) / 1000)
        return time.perf_counter()

    def end(argument: Any, began_s: float, outcome: str) -> None:
        seconds.observe(time.perf_counter() - began_s)
        running.dec()
        outcomes[outcome].inc(len(messages_of(argument)))

    def middleware(message: Any) -> Any:
        began_s, outcome = begin(message), "failed"
        try:
            result = consume(message)
            outcome = "consumed"
        except Later:
            outcome = "later"
            raise
        finally:
            end(message, began_s, outcome)
        return result

    async def async_middleware(message: Any) -> Any:
        began_s, outcome = begin(message), "failed"
        try:
            result = await consume(message)
            outcome = "consumed"
        except Later:
            outcome = "later"
            raise
        finally:
            end(message, began_s, outcome)
        return result

    return async_middleware if consume.is_async else middleware
