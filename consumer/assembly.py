"""Makes a consumer of a group's declared listeners: the one place where Django and the engine meet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db import close_old_connections, connections

from consumer.engine.config import ConsumerConfig
from consumer.engine.consume_concurrently import ConcurrentLimits
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import PushConsumer
from consumer.listener import GroupSpec


def make_consumer(spec: GroupSpec, namesrv: str) -> PushConsumer:
    config = ConsumerConfig(
        namesrv=namesrv,
        group=spec.group,
        max_reconsume_times=spec.max_reconsume_times,
        start=spec.start,
        concurrent=ConcurrentLimits(threads=spec.threads),
    )
    listeners = {topic: _with_connections(listener) for topic, listener in spec.listeners.items()}
    return PushConsumer(config, listeners, at_thread_end=connections.close_all)


def _with_connections(listener: Listener) -> Listener:
    """Closes old and broken database connections around each call of a sync listener, as Django does for a request.

    An async one runs on the event loop, where the ORM works in threads of its own.
    """
    if listener.is_async:
        return listener
    return replace(listener, call=_closing_old_connections(listener.call))


def _closing_old_connections(call: Callable[[Message], Any]) -> Callable[[Message], Any]:
    @functools.wraps(call)
    def wrapper(message: Message) -> Any:
        close_old_connections()
        try:
            return call(message)
        finally:
            close_old_connections()

    return wrapper
