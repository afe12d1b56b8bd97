"""Patience with a name server that stands still, on a busy machine, for longer than our client waits for its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from remoting.client.errors import RequestTimedOut
from remoting.client.name_servers import NameServersUnreachable
from tests.support.waiting import eventually

P = ParamSpec("P")
T = TypeVar("T")


async def answered(request: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Asks for a route, or sends to a topic, until a name server has answered; before that nothing was sent."""
    answers: list[T] = []

    async def is_answered() -> bool:
        try:
            answers.append(await request(*args, **kwargs))
        except NameServersUnreachable as error:
            if not any(isinstance(failure, RequestTimedOut) for failure in error.failures):
                raise
        return bool(answers)

    await eventually(is_answered, what="a name server's answer")
    return answers[0]
