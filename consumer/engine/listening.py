"""What a group's consumer calls for a topic, and calling it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from consumer.engine.message import Message


class Later(Exception):
    """What a listener raises when a message must come back later and nothing is wrong with the code.

    It counts as any other failure, but the log has one line of it and no traceback.
    """


@dataclass(frozen=True, slots=True)
class Listener:
    """`call` takes a Message. A sync one runs in a thread, an async one on the event loop.

    Returning means consumed, raising means later; the value returned is of no interest.
    """

    topic: str
    call: Callable[[Message], Any]
    tags: str = "*"
    is_async: bool = False


class NotAwaited(TypeError):
    """A listener declared as a plain function returned something to be awaited."""


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
    """Also for an object whose `__call__` is a coroutine function."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004
