from __future__ import annotations

import pytest

from consumer import assembly
from consumer.assembly import make_consumer
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.start_position import StartRule
from consumer.listener import GroupSpec


def spec(call: object, *, is_async: bool) -> GroupSpec:
    listener = Listener("orders", call, "paid", is_async=is_async)  # type: ignore[arg-type]
    return GroupSpec("billing", {"orders": listener}, 2, 7, 3, StartRule())


def test_a_consumer_is_what_the_group_declares() -> None:
    config = make_consumer(spec(print, is_async=False), "127.0.0.1:9876").config
    assert (config.group, config.concurrent.threads, config.max_reconsume_times, config.namesrv) == (
        "billing",
        7,
        3,
        "127.0.0.1:9876",
    )


def test_old_connections_are_closed_around_each_call_of_a_sync_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    monkeypatch.setattr(assembly, "close_old_connections", lambda: steps.append("clean"))

    def listen(message: Message) -> None:
        steps.append("listen")
        raise ValueError

    consumer = make_consumer(spec(listen, is_async=False), "127.0.0.1:9876")
    with pytest.raises(ValueError):  # noqa: PT011
        consumer.listeners["orders"].call(Message(topic="orders", body=b""))
    assert steps == ["clean", "listen", "clean"]


def test_an_async_listener_is_called_as_it_is() -> None:
    async def listen(message: Message) -> None: ...

    consumer = make_consumer(spec(listen, is_async=True), "127.0.0.1:9876")
    assert consumer.listeners["orders"].call is listen
