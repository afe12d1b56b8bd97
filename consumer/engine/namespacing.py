"""Listeners in a namespace (Java `ClientConfig.setNamespace`): brokers know `prod%orders`, listeners see `orders`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from consumer.engine.listening import Listener
from consumer.engine.message import Message
from remoting.wire.names import with_namespace, without_namespace


def in_namespace(namespace: str, listeners: Mapping[str, Listener]) -> dict[str, Listener]:
    """Returns the listeners by the topics that brokers know; each still sees the topics as they were declared."""
    if not namespace:
        return dict(listeners)
    return {
        with_namespace(namespace, topic): replace(listener, call=_seeing_declared_topics(listener.call, namespace))
        for topic, listener in listeners.items()
    }


def _seeing_declared_topics(call: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    def declared(message: Message) -> Message:
        return msgspec.structs.replace(message, topic=without_namespace(namespace, message.topic))

    def wrapper(messages: Message | list[Message]) -> Any:
        return call([declared(one) for one in messages] if isinstance(messages, list) else declared(messages))

    return wrapper
