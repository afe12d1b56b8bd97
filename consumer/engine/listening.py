"""A topic's listener function, and how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from consumer.engine.message import Message


class Later(Exception):
    """Raised by a listener to consume the message later (Java `RECONSUME_LATER`).

    It counts as any other failure, but is logged in one line without a traceback.
    """


@dataclass(frozen=True, slots=True)
class Listener:
    """`call` takes a Message. A sync one runs in a thread, an async one on the event loop.

    Returning means consumed, raising means later; the returned value is ignored.
    """

    topic: str
    call: Callable[[Message], Any]
    tags: str = "*"
    is_async: bool = False


class NotAwaited(TypeError):
    """A listener that is a plain function returned an awaitable."""


def call_sync(listener: Listener, message: Message) -> None:
    """Raises what the listener raises, and NotAwaited."""
    result = listener.call(message)
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise NotAwaited(f"the listener of topic {listener.topic!r} must be declared with `async def`")


async def call_async(listener: Listener, message: Message) -> None:
    await cast("Awaitable[Any]", listener.call(message))


def is_async_callable(call: Callable[..., Any]) -> bool:
    """Returns True for coroutine functions, and for objects whose `__call__` is one."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004
