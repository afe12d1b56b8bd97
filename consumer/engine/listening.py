"""A topic's listener function, and how it is called."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

from consumer.engine.failure_policy import FailurePolicy
from consumer.engine.message import Message
from remoting.wire.expressions import SqlExpression


@dataclass(frozen=True, slots=True)
class Listener:
    """`call` takes a Message, or up to `batch_size` in a list. A sync one runs in a thread, an async one on the loop.

    Returning means consumed, raising means later; the returned value is ignored. `decode` makes `message.data` of the
    body, which is the body itself without; where it raises, the listener is not called. `sql`, an SQL92 expression over
    the properties, takes the place of `tags`. `failures` says when what failed comes again;
    `name` is the function's, as failures tell it.
    """

    topic: str
    call: Callable[[Any], Any]
    tags: str = "*"
    is_async: bool = False
    decode: Callable[[bytes], Any] | None = None
    sql: str | None = None
    batch_size: int | None = None
    failures: FailurePolicy = field(default_factory=FailurePolicy)
    name: str = ""

    @property
    def expression(self) -> str | SqlExpression:
        return self.tags if self.sql is None else SqlExpression(self.sql)


class NotAwaited(TypeError):
    """A listener that is a plain function returned an awaitable."""


def call_sync(listener: Listener, argument: Message | list[Message]) -> None:
    """Raises what the listener raises, and NotAwaited."""
    result = listener.call(argument)
    if result is not None and inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise NotAwaited(f"the listener of topic {listener.topic!r} must be declared with `async def`")


async def call_async(listener: Listener, argument: Message | list[Message]) -> None:
    await cast("Awaitable[Any]", listener.call(argument))


def is_of_listener(error: BaseException) -> bool:
    """Says of what came out of `call_async` whether the listener raised it; else it is the end of the task itself.

    A task is cancelled, and one whose loop was closed is thrown away: that is no failure of a message.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or not task.cancelling()
    return not isinstance(error, GeneratorExit) or _is_in_a_loop()


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def is_async_callable(call: Callable[..., Any]) -> bool:
    """Returns True for coroutine functions, and for objects whose `__call__` is one."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004
