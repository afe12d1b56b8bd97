"""When consuming stands still because something is down, and how it goes on."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from consumer.engine.breaker import Breaker, BreakerGate, Circuit, State
from consumer.engine.config import ConsumerConfig
from consumer.engine.consume_concurrently import ConcurrentLimits
from consumer.engine.listener_call import ListenerCall, make_calls
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from consumer.engine.suspension import Suspension
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import PROP_SUSPENDED
from remoting.wire.stored_message import StoredMessage
from tests.support.children import free_port
from tests.support.memory_broker import MemoryBroker
from tests.support.virtual_time import VirtualLoop, VirtualTime
from tests.support.waiting import eventually

DOWN, BUG = ConnectionRefusedError("no route to the bank"), ValueError("bug")


def test_only_failures_in_a_row_open_it() -> None:
    circuit = Circuit(Breaker(on=OSError, failures=3))
    assert [circuit.judge(error) for error in (DOWN, DOWN, None, DOWN, BUG, DOWN)] == [None] * 6
    assert circuit.judge(DOWN) == 10.0
    assert circuit.state is State.OPEN


def test_each_pause_is_twice_the_one_before_until_a_probe_is_consumed() -> None:
    circuit = Circuit(Breaker(on=OSError, failures=1, pause_s=2, pause_max_s=7))
    pauses = []
    for _ in range(4):
        pauses.append(circuit.judge(DOWN))
        assert circuit.judge(DOWN) is None  # it had begun before
        circuit.pause_over()
    assert pauses == [2, 4, 7, 7]
    assert circuit.judge(BUG) is None
    assert circuit.state is State.PROBING
    circuit.judge(None)
    assert circuit.state is State.CLOSED
    assert circuit.judge(DOWN) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"on": ()},
        {"on": "OSError"},
        {"on": (OSError, 1)},
        {"on": OSError, "failures": 0},
        {"on": OSError, "pause_s": 0},
        {"on": OSError, "pause_s": 400},
    ],
)
def test_a_breaker_that_could_not_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Breaker"):
        Breaker(**wrong)


class House:
    """A gate on a loop of virtual time, with what it let begin."""

    def __init__(self) -> None:
        self.loop = VirtualLoop(VirtualTime())
        self.began: list[int] = []
        self.suspension = Suspension()
        self.gate = BreakerGate(Breaker(on=OSError, failures=2, pause_s=10), "billing", self.suspension, self._begin)
        self._process_queue = ProcessQueue(MessageQueue("orders", "broker-a", 0), 0)
        self._calls: dict[int, ListenerCall] = {}

    def _begin(self, messages: Any) -> None:
        for call in make_calls(messages, {}):
            offset = call.first.stored.queue_offset
            self._calls[offset] = call
            self.began.append(offset)

    def pull(self, *offsets: int) -> None:
        messages = [StoredMessage(topic="orders", queue_id=0, queue_offset=offset) for offset in offsets]
        self.gate.submit(self._process_queue.put(messages, offsets[-1] + 1))

    def end(self, offset: int, error: BaseException | None) -> bool:
        call = self._calls[offset]
        call.error = error

        async def judge() -> bool:
            return self.gate.judge(call)

        return bool(self.loop.run(judge()))

    def waiting(self, *offsets: int) -> list[ListenerCall]:
        return [self._calls[offset] for offset in offsets]


@pytest.fixture
def house() -> Any:
    made = House()
    yield made
    made.loop.close()


def test_while_open_nothing_is_pulled_or_begun_and_then_one_message_is_tried(house: House) -> None:
    house.pull(0, 1, 2, 3)
    assert not house.end(0, DOWN)
    assert house.end(1, DOWN)
    house.gate.take_back(house.waiting(2, 3))
    assert house.suspension.reasons == ("breaker: ConnectionRefusedError: no route to the bank",)
    house.began.clear()
    house.pull(4, 5)
    house.loop.pass_ms(9_900)
    assert house.began == []
    house.loop.pass_ms(200)
    assert house.began == [2]
    assert house.end(2, DOWN)
    house.loop.pass_ms(19_000)
    assert house.began == [2]
    house.loop.pass_ms(2_000)
    assert house.began == [2, 3]
    assert not house.end(3, None)
    assert (house.began, house.suspension.reasons) == ([2, 3, 4, 5], ())
    house.pull(6)
    assert house.began[-1] == 6


def test_with_nothing_pulled_the_first_message_that_comes_is_tried_alone(house: House) -> None:
    house.pull(0, 1)
    house.end(0, DOWN)
    house.end(1, DOWN)
    house.loop.pass_ms(10_100)
    assert house.suspension.reasons == ()
    house.pull(2, 3)
    house.pull(4)
    assert house.began == [0, 1, 2]
    house.end(2, BUG)
    assert house.began == [0, 1, 2, 3]
    house.end(3, None)
    assert house.began == [0, 1, 2, 3, 4]


def test_a_stop_leaves_what_waits_to_others(house: House) -> None:
    house.pull(0, 1)
    house.end(0, DOWN)
    house.end(1, DOWN)
    house.pull(2)
    house.gate.stop()
    house.loop.pass_ms(60_000)
    assert house.began == [0, 1]


async def test_a_member_says_why_it_stands_still_and_goes_on_by_itself() -> None:
    is_down, bodies, bank = True, list[str](), ("127.0.0.1", free_port())

    def listen(message: Message) -> None:
        if is_down:
            socket.create_connection(bank)
        bodies.append(message.text)

    async with MemoryBroker() as broker:
        broker.create_topic("orders", 4)
        broker.holds_retries = True
        broker.put("orders", *[str(number).encode() for number in range(200)])
        config = ConsumerConfig(
            broker.namesrv,
            "billing",
            start=start_rule("first"),
            concurrent=ConcurrentLimits(threads=1),
            breaker=Breaker(on=OSError, failures=3, pause_s=0.05, pause_max_s=0.1),
        )
        member = PushConsumer(config, {"orders": Listener("orders", listen)})
        await member.start()
        await eventually(lambda: member.suspended)
        told = member.running_info().properties[PROP_SUSPENDED]
        assert told.startswith("breaker: ConnectionRefusedError: ")
        is_down = False
        await eventually(lambda: len(bodies) + len(broker.held_retries) == 200)
        assert not member.suspended
        # Without a breaker all of the 200 would have been sent back.
        assert len(bodies) > 100
        await member.stop()
