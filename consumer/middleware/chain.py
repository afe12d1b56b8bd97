"""Wraps a listener's function with the project's middleware, as Django's `BaseHandler.load_middleware` does a view.

A middleware is a callable that takes `consume` and returns a callable in its place. It is called once per listener when
a consumer is made; what it returns, once per message, or with a list of messages for a batch listener. It returns what
`consume` returns. It may raise `MiddlewareNotUsed`, and has `sync_capable` (True unless it says otherwise) and
`async_capable` (False), which `django.utils.decorators` sets: where it cannot do what the listener is, `asgiref`
stands between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync, markcoroutinefunction, sync_to_async
from django.core.exceptions import ImproperlyConfigured, MiddlewareNotUsed
from django.utils.module_loading import import_string

from consumer.engine.message import Message

Call = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class ListenerInfo:
    """What a middleware may want to know of the listener. `name` is that of its function, with its module."""

    group: str
    topic: str
    name: str
    is_async: bool
    cluster: str = ""


class Consume:
    """Goes on with the message: the rest of the middleware, then the listener. `listener` says which."""

    def __init__(self, call: Call, listener: ListenerInfo, *, is_async: bool) -> None:
        self._call = call
        self.listener = listener
        self.is_async = is_async
        if is_async:
            markcoroutinefunction(self)

    def __call__(self, message: Any) -> Any:
        return self._call(message)


Middleware = Callable[[Consume], Call]


def load(paths: Sequence[str]) -> list[Middleware]:
    """Imports what the setting names. Raises ImproperlyConfigured."""
    found: list[Middleware] = []
    for path in paths:
        try:
            middleware = import_string(path)
        except ImportError as error:
            raise ImproperlyConfigured(f"CONSUMER_MIDDLEWARE: {path!r} cannot be imported: {error}") from error
        if not callable(middleware):
            raise ImproperlyConfigured(f"CONSUMER_MIDDLEWARE: {path!r} is no callable that takes `consume`")
        found.append(middleware)
    return found


def wrapped(call: Call, listener: ListenerInfo, chain: Sequence[Middleware]) -> Call:
    """Returns the listener's function inside of the middleware, the first outermost. Raises ImproperlyConfigured."""
    inner = Consume(call, listener, is_async=listener.is_async)
    for middleware in reversed(chain):
        try:
            outer = _adapted(middleware, inner)
        except MiddlewareNotUsed:
            continue
        if outer is None:
            raise ImproperlyConfigured(f"CONSUMER_MIDDLEWARE: {middleware!r} returned None instead of a callable")
        inner = Consume(outer, listener, is_async=listener.is_async)
    return inner if chain else call


def messages_of(argument: Message | list[Message]) -> list[Message]:
    """Returns the messages of one call: a listener takes one, a batch listener a list."""
    return argument if isinstance(argument, list) else [argument]


def _adapted(middleware: Middleware, inner: Consume) -> Call:
    is_sync_capable = getattr(middleware, "sync_capable", True)
    is_async_capable = getattr(middleware, "async_capable", False)
    if inner.is_async and not is_async_capable:
        # A thread of its own per call: in asgiref's common one, one message would wait for another.
        outer = middleware(Consume(async_to_sync(inner), inner.listener, is_async=False))
        return sync_to_async(outer, thread_sensitive=False)
    if not inner.is_async and not is_sync_capable:
        adapted: Call = async_to_sync(middleware(Consume(sync_to_async(inner), inner.listener, is_async=True)))
        return adapted
    return middleware(inner)
