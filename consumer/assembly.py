"""From what was declared to a consumer that runs: the one place where Django and the engine meet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.db import close_old_connections, connections

from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.push_consumer import ConsumerConfig, PushConsumer
from consumer.listener import GroupSpec


def make_consumer(spec: GroupSpec, namesrv: str) -> PushConsumer:
    config = ConsumerConfig(
        namesrv=namesrv,
        group=spec.group,
        threads=spec.threads,
        max_reconsume_times=spec.max_reconsume_times,
        start=spec.start,
    )
    listeners = {topic: _with_connections(listener) for topic, listener in spec.listeners.items()}
    return PushConsumer(config, listeners, at_thread_end=connections.close_all)


def _with_connections(listener: Listener) -> Listener:
    """A sync listener gets what a request gets: no database connection that is too old or broken.

    An async one runs on the event loop, where the ORM does its work in threads of its own.
    """
    if listener.is_async:
        return listener
    return replace(listener, call=_between_cleanings(listener.call))


def _between_cleanings(call: Callable[[Message], Any]) -> Callable[[Message], Any]:
    @functools.wraps(call)
    def cleaned(message: Message) -> Any:
        close_old_connections()
        try:
            return call(message)
        finally:
            close_old_connections()

    return cleaned
