"""Patience with a server that a busy machine holds up for longer than our client or the console waits for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

import pytest

from remoting.client.errors import ClientError, RequestTimedOut
from remoting.client.instance import ClientInstance
from remoting.client.name_servers import NameServersUnreachable
from remoting.wire.bodies.route import TopicRouteData
from tests.support.waiting import eventually

ANSWER_WITHIN_S = 60.0

P = ParamSpec("P")
T = TypeVar("T")


def let_console_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the console's requests to a cluster wait for an answer; of a server that is away they hear at once."""
    monkeypatch.setattr("mqadmin.observing.gateway.gateway.REQUEST_TIMEOUT_S", ANSWER_WITHIN_S)


async def answered(request: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Asks for a route, or sends to a topic, until a name server has answered; before that nothing was sent."""

    def is_late(error: Exception) -> bool:
        return isinstance(error, NameServersUnreachable) and any(
            isinstance(failure, RequestTimedOut) for failure in error.failures
        )

    return await _again(lambda: request(*args, **kwargs), is_late)


async def routed(instance: ClientInstance, topic: str) -> TopicRouteData | None:
    """The topic's route with its queues, asked for now; None while there is none, or no name server answers."""
    try:
        route = await instance.routes.refresh(topic)
    except ClientError:
        return None
    return route if route.queue_datas else None


async def patiently(request: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Asks again where a broker's answer comes too late: for what may be carried out twice."""
    return await _again(lambda: request(*args, **kwargs), lambda error: isinstance(error, TimeoutError))


async def _again(request: Callable[[], Awaitable[T]], is_late: Callable[[Exception], bool]) -> T:
    answers: list[T] = []

    async def is_answered() -> bool:
        try:
            answers.append(await request())
        except Exception as error:
            if not is_late(error):
                raise
        return bool(answers)

    await eventually(is_answered, what="an answer in time")
    return answers[0]
