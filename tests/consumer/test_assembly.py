from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consumer.assembly import make_consumer
from consumer.checks import check_middleware
from consumer.engine.message import Message
from consumer.listener import Declaration, GroupSpec, Registry
from consumer.middleware.chain import Call, Consume
from consumer.middleware.time_limit import TookTooLong

steps: list[str] = []


def noting(consume: Consume) -> Call:
    def middleware(message: Message) -> Any:
        steps.append(consume.listener.group)
        return consume(message)

    return middleware


def spec(call: Callable[..., Any], **options: Any) -> GroupSpec:
    registry = Registry()
    given: Any = {"threads": 7, "max_reconsume_times": 3, **options}
    registry.declare(Declaration("billing", "orders", call, given))
    registry.freeze()
    return registry.groups["billing"]


def test_a_consumer_is_what_the_group_declares() -> None:
    config = make_consumer(spec(print), "127.0.0.1:9876").config
    assert (config.group, config.concurrent.threads, config.max_reconsume_times, config.namesrv) == (
        "billing",
        7,
        3,
        "127.0.0.1:9876",
    )


def test_a_group_that_consumes_in_order_has_no_end_of_retries_by_default() -> None:
    registry = Registry()
    registry.declare(Declaration("billing", "orders", print, {"orderly": True, "suspend_ms": 200}))
    registry.freeze()
    config = make_consumer(registry.groups["billing"], "127.0.0.1:9876").config
    assert (config.is_orderly, config.suspend_ms, config.reconsume_limit) == (True, 200, 2**31 - 1)


def test_a_broadcasting_group_keeps_its_offsets_in_a_folder_of_its_cluster(settings: Any, tmp_path: Path) -> None:
    settings.CONSUMER_OFFSETS_FOLDER = tmp_path
    registry = Registry()
    registry.declare(Declaration("billing", "orders", print, {"broadcasting": True}))
    registry.freeze()
    config = make_consumer(registry.groups["billing"], "127.0.0.1:9876").config
    assert (config.is_broadcasting, config.offsets_folder) == (True, tmp_path / "default")


def test_why_messages_failed_is_kept_unless_the_settings_say_otherwise(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorders: list[tuple[str, str]] = []

    def recorder(cluster: str, group: str) -> None:
        recorders.append((cluster, group))

    monkeypatch.setattr("consumer.assembly.FailureRecorder", recorder)
    settings.CONSUMER_FAILURE_TEXTS = False
    assert not make_consumer(spec(print), "127.0.0.1:9876").config.keeps_failure_texts
    assert recorders == []
    del settings.CONSUMER_FAILURE_TEXTS
    assert make_consumer(spec(print), "127.0.0.1:9876").config.keeps_failure_texts
    assert recorders == [("", "billing")]


def test_listeners_are_wrapped_by_what_the_settings_name(settings: Any) -> None:
    settings.CONSUMER_MIDDLEWARE = [f"{__name__}.noting", f"{__name__}.noting"]
    steps.clear()

    def listen(message: Message) -> None:
        steps.append("listens")

    make_consumer(spec(listen), "127.0.0.1:9876").listeners["orders"].call(Message(topic="orders"))
    assert steps == ["billing", "billing", "listens"]


def test_without_middleware_a_listener_is_called_as_it_is(settings: Any) -> None:
    settings.CONSUMER_MIDDLEWARE = []
    assert make_consumer(spec(print), "127.0.0.1:9876").listeners["orders"].call is print


async def test_an_async_listener_with_a_time_limit_is_cancelled_at_it(settings: Any) -> None:
    # Theirs look after connections of the database, which another test may have left to a thread.
    settings.CONSUMER_MIDDLEWARE = []

    async def hang(message: Message) -> None:
        await asyncio.Event().wait()

    call = make_consumer(spec(hang, time_limit_s=0.01), "127.0.0.1:9876").listeners["orders"].call
    with pytest.raises(TookTooLong, match=r"hang took longer than its time limit of 0\.01 s"):
        await call(Message(topic="orders"))


@pytest.mark.parametrize(
    ("paths", "reason"),
    [
        pytest.param(["shop.nowhere"], "'shop.nowhere' cannot be imported", id="a typing error"),
        pytest.param(["consumer.middleware.transactions.atomic"], "listen is async", id="one that cannot wrap it"),
    ],
)
def test_a_wrong_middleware_is_a_fault_of_the_system_check(settings: Any, paths: list[str], reason: str) -> None:
    async def listen(message: Message) -> None: ...

    settings.CONSUMER_MIDDLEWARE = paths
    registry = Registry()
    registry.declare(Declaration("billing", "orders", listen))
    registry.declare(Declaration("mailing", "orders", listen))
    registry.freeze()
    (error,) = check_middleware(registry)
    assert error.id == "consumer.E008"
    assert reason in error.msg
