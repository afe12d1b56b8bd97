"""Whatever a listener raises: its message comes again, and everything else goes on."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Sequence

import pytest

from consumer.engine.breaker import Breaker
from consumer.engine.clock import now_ms
from consumer.engine.listener_call import ListenerCall
from consumer.engine.listening import Listener
from consumer.engine.loop_workers import LoopWorkers
from consumer.engine.message import Message
from consumer.engine.process_queue import ProcessQueue
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.error_text import NO_TEXT
from remoting.wire.stored_message import StoredMessage, encode_message
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_members import GROUP, Members, listener_into, order_queues
from tests.support.waiting import eventually

QUEUE = MessageQueue("orders", "memory", 0)


class Own(BaseException):
    """No Exception, and not known to anybody."""


class Mute(Exception):
    """Cannot say its text."""

    def __str__(self) -> str:
        raise LookupError("text")


def _wrong_text() -> Exception:
    return ValueError("a text \x00, \x01, \x02\nand more")


FEW: list[Callable[[], BaseException]] = [ValueError, lambda: SystemExit(3), asyncio.CancelledError, Own, Mute]
MORE: list[Callable[[], BaseException]] = [
    GeneratorExit,
    KeyboardInterrupt,
    TimeoutError,
    StopIteration,
    StopAsyncIteration,
    RecursionError,
    MemoryError,
    lambda: ExceptionGroup("several", [ValueError("one"), ValueError("two")]),
    lambda: BaseExceptionGroup("several", [SystemExit(3)]),
    _wrong_text,
]
KINDS = pytest.mark.parametrize(
    "make",
    [*FEW, *(pytest.param(one, marks=pytest.mark.sweep) for one in MORE)],
    ids=lambda make: type(error).__name__ if (error := make()) else "",
)


@KINDS
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
@pytest.mark.parametrize("is_orderly", [True, False], ids=["in order", "concurrently"])
async def test_a_message_comes_again_whatever_its_listener_raises(
    broker: MemoryBroker, members: Members, make: Callable[[], BaseException], is_async: bool, is_orderly: bool
) -> None:
    seen: list[tuple[str, int]] = []

    def listen(message: Message) -> None:
        seen.append((message.text, message.reconsume_times))
        if message.text == "bad" and not message.reconsume_times:
            raise make()

    async def listen_async(message: Message) -> None:
        listen(message)

    broker.put("orders", b"bad", b"good", b"better", queue_id=0)
    member = await members.start(
        listen_async if is_async else listen, is_async=is_async, is_orderly=is_orderly, suspend_ms=10
    )
    await eventually(lambda: len(seen) == 4)
    assert sorted(seen) == [("bad", 0), ("bad", 1), ("better", 0), ("good", 0)]
    await members.stop(member)
    assert broker.offsets[GROUP, QUEUE] == 3


async def test_what_cannot_say_its_text_is_logged_told_and_opens_a_breaker_all_the_same(
    broker: MemoryBroker, members: Members, caplog: pytest.LogCaptureFixture
) -> None:
    async def listen(message: Message) -> None:
        raise Mute

    broker.put("orders", b"bad", queue_id=0)
    member = await members.start(listen, breaker=Breaker(on=Mute, failures=1))
    await eventually(lambda: member.suspended)
    assert member.suspended == (f"breaker: Mute: {NO_TEXT}",)
    assert f"Mute: {NO_TEXT}" in caplog.text
    assert NO_TEXT in member.running_info().properties["MQADMIN_LATEST_FAILURES"]


@KINDS
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
async def test_a_tool_hears_what_a_listener_raised(
    broker: MemoryBroker, members: Members, make: Callable[[], BaseException], is_async: bool
) -> None:
    def listen(message: Message) -> None:
        raise make()

    async def listen_async(message: Message) -> None:
        raise make()

    member = await members.start(listen_async if is_async else listen, is_async=is_async)
    await eventually(lambda: len(order_queues(member)) == 8)
    fields = {"consumerGroup": GROUP, "clientId": member.client_id, "brokerName": "memory"}
    stored = encode_message(StoredMessage(topic="orders", queue_id=3, queue_offset=7, body=b"x"))
    asked = Command(code=RequestCode.CONSUME_MESSAGE_DIRECTLY, ext_fields=fields, body=stored)
    answer = await broker.ask_member(GROUP, member.client_id, asked)
    assert answer.code == ResponseCode.SUCCESS
    told = json.loads(answer.body)
    # Python itself makes a RuntimeError of these where they leave a coroutine.
    kinds = {type(make()).__name__, "RuntimeError"} if is_async else {type(make()).__name__}
    assert told["consumeResult"] == "CR_THROW_EXCEPTION"
    assert told["remark"].partition(":")[0] in kinds


@pytest.mark.parametrize("kind", [ValueError, SystemExit, Own, Mute])
async def test_what_a_teams_own_functions_raise_ends_no_member(
    broker: MemoryBroker, members: Members, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    def no_strategy(queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> Sequence[MessageQueue]:
        if not broken.is_set():
            raise kind
        return queues

    def no_callback(topic: str, queues: Sequence[MessageQueue], own: Sequence[MessageQueue]) -> None:
        raise kind

    broken = asyncio.Event()
    bodies: list[bytes] = []
    broker.put("orders", b"x")
    await members.start(listener_into(bodies), strategy=no_strategy, queues_changed=no_callback)
    await eventually(
        lambda: f"cannot be used for 8 queues of topic 'orders' and 1 members: {kind.__name__}" in caplog.text
    )
    broken.set()
    await eventually(lambda: bodies == [b"x"])
    assert "what was to hear of changed queues failed" in caplog.text


def test_workers_that_are_thrown_away_with_their_loop_call_nothing_more() -> None:
    began: list[object] = []
    has_begun = asyncio.Event()

    async def listen(message: object) -> None:
        began.append(message)
        has_begun.set()
        await asyncio.Event().wait()

    async def start() -> None:
        listener = Listener("orders", listen, is_async=True)
        workers = LoopWorkers(1, lambda calls: None, now_ms, name="t")
        stored = [StoredMessage(topic="orders", queue_id=0, queue_offset=number) for number in range(2)]
        cached = ProcessQueue(QUEUE, 0).put(stored, 2)
        workers.submit([ListenerCall("orders", listener, (one,)) for one in cached])
        await has_begun.wait()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(start())
    loop.set_exception_handler(lambda *_: None)  # "Task was destroyed but it is pending", which is what is meant
    loop.close()
    gc.collect()
    assert len(began) == 1
