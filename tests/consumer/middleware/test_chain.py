from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ImproperlyConfigured, MiddlewareNotUsed
from django.utils.decorators import async_only_middleware, sync_and_async_middleware

from consumer import Message
from consumer.middleware.chain import Call, Consume, ListenerInfo, load, messages_of, wrapped

MESSAGE = Message(topic="orders", body=b"17")


def info(*, is_async: bool) -> ListenerInfo:
    return ListenerInfo("billing", "orders", "shop.bill", is_async)


def noting(steps: list[str], name: str) -> Callable[[Consume], Call]:
    def factory(consume: Consume) -> Call:
        def middleware(message: Any) -> Any:
            steps.append(f"{name} before {message.text}")
            try:
                return consume(message)
            finally:
                steps.append(f"{name} after")

        return middleware

    return factory


def test_the_first_of_the_list_is_the_outermost_and_the_result_comes_back() -> None:
    steps: list[str] = []
    call = wrapped(
        lambda message: f"consumed {message.text}", info(is_async=False), [noting(steps, "a"), noting(steps, "b")]
    )
    assert call(MESSAGE) == "consumed 17"
    assert steps == ["a before 17", "b before 17", "b after", "a after"]


def test_errors_of_the_listener_pass_through() -> None:
    steps: list[str] = []

    def fail(message: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        wrapped(fail, info(is_async=False), [noting(steps, "a")])(MESSAGE)
    assert steps == ["a before 17", "a after"]


def test_without_middleware_the_function_is_called_as_it_is() -> None:
    assert wrapped(print, info(is_async=False), []) is print


def test_a_middleware_knows_the_listener_also_inside_of_others() -> None:
    seen: list[ListenerInfo] = []

    def looking(consume: Consume) -> Call:
        seen.append(consume.listener)
        return consume

    wrapped(print, info(is_async=False), [looking, looking])
    assert seen == [info(is_async=False)] * 2


def test_a_class_is_a_middleware_as_in_django() -> None:
    class Doubling:
        def __init__(self, consume: Consume) -> None:
            self.consume = consume

        def __call__(self, message: Any) -> Any:
            return self.consume(message) * 2

    assert wrapped(lambda message: 4, info(is_async=False), [Doubling])(MESSAGE) == 8


def test_a_middleware_that_is_not_used_is_left_out() -> None:
    def unused(consume: Consume) -> Call:
        raise MiddlewareNotUsed

    assert wrapped(lambda message: 4, info(is_async=False), [unused])(MESSAGE) == 4


def test_a_middleware_that_returns_nothing_is_refused() -> None:
    def forgetful(consume: Consume) -> None: ...

    with pytest.raises(ImproperlyConfigured, match=r"forgetful.* returned None"):
        wrapped(print, info(is_async=False), [forgetful])  # type: ignore[list-item]


async def test_a_middleware_for_both_sees_which_the_listener_is() -> None:
    @sync_and_async_middleware
    def both(consume: Consume) -> Call:
        assert iscoroutinefunction(consume) == consume.is_async == consume.listener.is_async

        async def middleware(message: Any) -> Any:
            return await consume(message) + 1

        return middleware if consume.is_async else lambda message: consume(message) + 1

    async def listen(message: object) -> int:
        await asyncio.sleep(0)
        return 4

    assert await wrapped(listen, info(is_async=True), [both, both])(MESSAGE) == 6
    assert wrapped(lambda message: 4, info(is_async=False), [both, both])(MESSAGE) == 6


async def test_a_plain_middleware_around_an_async_listener_runs_in_a_thread() -> None:
    loop_thread = threading.current_thread()
    threads: list[threading.Thread] = []

    def plain(consume: Consume) -> Call:
        def middleware(message: Any) -> Any:
            threads.append(threading.current_thread())
            return consume(message)

        return middleware

    async def listen(message: object) -> str:
        threads.append(threading.current_thread())
        return "consumed"

    assert await wrapped(listen, info(is_async=True), [plain])(MESSAGE) == "consumed"
    assert threads[0] is not loop_thread
    assert threads[1] is loop_thread


def test_an_async_middleware_around_a_plain_listener_gets_a_loop() -> None:
    @async_only_middleware
    def patient(consume: Consume) -> Call:
        async def middleware(message: Any) -> Any:
            await asyncio.sleep(0)
            return await consume(message)

        return middleware

    assert wrapped(lambda message: 4, info(is_async=False), [patient])(MESSAGE) == 4


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("shop.nowhere.middleware", "'shop.nowhere.middleware' cannot be imported"),
        ("nodots", "'nodots' cannot be imported"),
        ("consumer.options.RECONSUME_TIMES_MAX", "is no callable"),
    ],
)
def test_a_path_that_names_no_middleware_is_refused(path: str, reason: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"CONSUMER_MIDDLEWARE: .*{reason}"):
        load([path])


def test_one_message_and_a_batch_are_both_lists() -> None:
    assert messages_of(MESSAGE) == [MESSAGE]
    assert messages_of([MESSAGE, MESSAGE]) == [MESSAGE, MESSAGE]
