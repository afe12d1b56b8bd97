"""A group that lives: a broker, members on machines of their own, a sender, and everything that can happen to them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.outcomes import Later
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.frames import FrameReader
from remoting.wire.headers.groups import SendMessageBackHeader
from remoting.wire.headers.offsets import UpdateConsumerOffsetHeader
from remoting.wire.headers.pull import COMMIT_OFFSET_FLAG, PullMessageHeader
from remoting.wire.headers.send import SendMessageHeaderV2
from remoting.wire.headers.typed import read_header, write_header
from remoting.wire.properties import Property, encode_properties
from tests.simulation.consumer.history import BROKER, GROUP, Fault, History
from tests.support.machines import Machine, Machines, Wire
from tests.support.simulated_broker import QuickFiles, SimulatedBroker
from tests.support.stores import SMALL

TOPIC = "orders"
BILLING = "billing"
QUEUES = 4
MEMBERS_MAX = 4
NAME_SERVER_PORT = 9876
# Everything is consumed and committed so soon after the last fault: the locks of a killed member live 60 s.
CALM_S = 400.0


class Member:
    def __init__(self, world: World, machine: Machine) -> None:
        self.machine = machine
        self.name = machine.name
        self._world = world
        config = ConsumerConfig(
            f"127.0.0.1:{NAME_SERVER_PORT}", BILLING, start=start_rule("first"), is_orderly=world.history.is_orderly
        )
        listener = Listener(TOPIC, self._listen, is_async=True)
        self.consumer = PushConsumer(config, {TOPIC: listener}, clock=world.broker.time.wall_ms)
        self.fault: Fault | None = None
        self.ending: asyncio.Task[None] | None = None
        machine.begin(self.consumer.start())

    async def _listen(self, message: Message) -> None:
        queue_id, number = map(int, message.text.split("/"))
        call = self._world.history.began(self.name, (queue_id, number))
        is_ok = False
        try:
            await asyncio.sleep(self._world.listening_s())
            if self._world.is_failing():
                raise Later("the test says so")
            is_ok = True
        finally:
            if not self.machine.is_killed:
                self._world.history.ended(call, is_ok=is_ok)


class World:
    def __init__(self, folder: Path, seed: int, *, is_orderly: bool) -> None:
        self.chance = random.Random(seed)
        self.broker = SimulatedBroker(
            folder, SMALL, QuickFiles(), delay_levels="1s 1s 2s 3s 5s 5s 5s 5s", default_queue_nums=QUEUES
        )
        self.history = History(lambda: self.broker.time.now_s, is_orderly)
        self._is_broker_up = True
        self.machines = Machines(
            self.broker.time, lambda: self.broker.loop if self._is_broker_up else None, self._accept
        )
        self.members: list[Member] = []
        self.ended: list[Member] = []
        self._names = 0
        self._until: list[tuple[float, Callable[[], None]]] = []
        self._is_calm = False
        self.broker.broker.topics.create_on_send(TOPIC, "TBW102", QUEUES)
        self._sender = self.broker.connect("sender")

    # what listeners do

    def listening_s(self) -> float:
        longest_s = self.chance.choices((0.0, 0.05, 0.5, 3.0, 30.0), (10, 40, 20, 6, 0 if self._is_calm else 1))[0]
        return self.chance.random() * longest_s

    def is_failing(self) -> bool:
        return self.chance.random() < 0.03

    # what happens

    def operations(self) -> list[tuple[int, Callable[[], None]]]:
        return [
            (30, self.send),
            (30, lambda: self.wait(self.chance.random() * 3)),
            (3, lambda: self.wait(self.chance.random() * 60)),
            (5, self.join),
            (3, self.leave),
            (3, self.kill),
            (2, self.pause),
            (2, self.cut),
            (2, self.hold),
            (1, self.restart_broker),
        ]

    def wait(self, seconds: float) -> None:
        """What was to end meanwhile ends."""
        end_s = self.broker.time.now_s + seconds
        while self._until and self._until[0][0] <= end_s:
            at_s, what = self._until.pop(0)
            self._pass(max(0.0, at_s - self.broker.time.now_s))
            what()
        self._pass(max(0.0, end_s - self.broker.time.now_s))
        for member in [member for member in self.members if member.ending is not None and member.ending.done()]:
            self._left(member)

    def send(self) -> None:
        if not self._is_broker_up:
            return
        for _ in range(self.chance.randrange(1, 20)):
            queue_id = self.chance.randrange(QUEUES)
            number = self.history.sent[queue_id]
            properties = encode_properties({Property.UNIQ_KEY: f"{queue_id}/{number}"})
            header = SendMessageHeaderV2(
                producer_group="shop",
                topic=TOPIC,
                queue_id=queue_id,
                sys_flag=0,
                born_timestamp=self.broker.time.wall_ms(),
                flag=0,
                properties=properties,
            )
            body = f"{queue_id}/{number}".encode()
            answer = self._sender.ask(RequestCode.SEND_MESSAGE_V2, body, **write_header(header))
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            assert int(answer.ext_fields["queueOffset"]) == number
            self.history.sent[queue_id] += 1

    def join(self) -> None:
        if len(self.members) < MEMBERS_MAX:
            self._names += 1
            self.members.append(Member(self, self.machines.add(f"member {self._names}")))
            self._group_changes("joins")

    def leave(self) -> None:
        member = self._any(lambda one: one.ending is None)
        if member is not None:
            member.ending = member.machine.begin(member.consumer.stop())
            self._group_changes("leaves")

    def kill(self) -> None:
        member = self._any()
        if member is None:
            return
        self.history.fault(member.name, "killed")
        self._group_changes("is killed")
        self.members.remove(member)
        self.history.killed(member.name)
        member.machine.kill()
        self.machines.all.remove(member.machine)

    def pause(self) -> None:
        member = self._any(lambda one: not one.machine.is_paused)
        if member is None:
            return
        member.machine.is_paused = True
        fault = self.history.fault(member.name, "paused")

        def resume() -> None:
            member.machine.is_paused = False
            fault.ended_s = self.broker.time.now_s

        self._later(self.chance.choice((5, 40, 90)), fault, resume)

    def cut(self) -> None:
        member = self._any()
        if member is not None:
            self.history.fault(member.name, "cut")
            member.machine.cut()

    def hold(self) -> None:
        """Nothing arrives on the connections that it has."""
        member = self._any()
        if member is None:
            return
        fault = self.history.fault(member.name, "held")
        wires = list(member.machine.wires)
        for wire in wires:
            wire.hold()

        def release() -> None:
            for wire in wires:
                wire.release()
            fault.ended_s = self.broker.time.now_s

        self._later(self.chance.choice((2, 10, 70)), fault, release)

    def restart_broker(self) -> None:
        if not self._is_broker_up:
            return
        fault = self.history.fault(BROKER, "restarted")
        self._is_broker_up = False
        if self.chance.random() < 0.5:
            self.broker.stop()
        else:
            self.broker.kill()
            self.history.broker_forgot()
        self.machines.server_lost()

        def start() -> None:
            self.broker.start()
            self._is_broker_up = True
            self._sender = self.broker.connect("sender")
            fault.ended_s = self.broker.time.now_s

        self._later(self.chance.random() * 10, fault, start)

    # the end

    def calm_down(self) -> None:
        """All faults end; what was sent is consumed and committed, and the members leave without a trace."""
        self._is_calm = True
        while self._until:
            self.wait(max(0.0, self._until[0][0] - self.broker.time.now_s))
        while len(self.members) < 2:
            self.join()
        self._run_until(lambda: not self.history.lost and self.history.is_idle and self._is_committed())
        for member in self.members:
            if member.ending is None:
                member.ending = member.machine.begin(member.consumer.stop())
        self._run_until(lambda: all(member.ending is not None and member.ending.done() for member in self.members))
        for member in list(self.members):
            self._left(member)
        self.broker.stop()

    def drop(self) -> None:
        """After a failure: nothing may be left behind."""
        for member in list(self.members):
            member.machine.is_paused = False
            member.machine.kill()
        if self._is_broker_up:
            self.broker.kill()

    def _is_committed(self) -> bool:
        offsets = self.broker.broker.groups.offsets
        return all(
            offsets.committed(BILLING, TOPIC, queue_id) == count for queue_id, count in self.history.sent.items()
        )

    def _run_until(self, condition: Callable[[], bool]) -> None:
        self.machines.run_until(condition, CALM_S)

    # parts

    def _any(self, wanted: Callable[[Member], bool] = lambda _: True) -> Member | None:
        found = [member for member in self.members if wanted(member)]
        return self.chance.choice(found) if found else None

    def _group_changes(self, what: str) -> None:
        """Queues that are not locked move while messages are under way."""
        if not self.history.is_orderly:
            self.history.fault(GROUP, what)

    def _later(self, seconds: float, fault: Fault, what: Callable[[], None]) -> None:
        at_s = self.broker.time.now_s + seconds
        fault.ended_s = at_s
        self._until.append((at_s, what))
        self._until.sort(key=lambda item: item[0])

    def _pass(self, seconds: float) -> None:
        self.machines.pass_s(seconds)

    def _left(self, member: Member) -> None:
        assert member.ending is not None
        member.ending.result()
        self.members.remove(member)
        self.machines.all.remove(member.machine)
        left = asyncio.all_tasks(member.machine.loop)
        assert not left, f"{member.name} left tasks behind: {left}"
        member.machine.loop.close()

    def _accept(self, wire: Wire, port: int) -> asyncio.Protocol:
        wire.tap = partial(self._saw, wire.machine.name, FrameReader())
        return self.broker.accept(port)

    def _saw(self, member: str, reader: FrameReader, data: bytes) -> None:
        for command in reader.feed(data):
            if not command.is_response:
                self._saw_request(member, command)

    def _saw_request(self, member: str, request: Command) -> None:
        if request.code == RequestCode.UPDATE_CONSUMER_OFFSET:
            commit = read_header(UpdateConsumerOffsetHeader, request.ext_fields)
            if commit.topic == TOPIC:
                self.history.committed(member, commit.queue_id or 0, commit.commit_offset or 0)
        elif request.code == RequestCode.QUERY_CONSUMER_OFFSET:
            asked = read_header(UpdateConsumerOffsetHeader, request.ext_fields)
            if asked.topic == TOPIC:
                self.history.took(member, asked.queue_id or 0)
        elif request.code == RequestCode.PULL_MESSAGE:
            pull = read_header(PullMessageHeader, request.ext_fields)
            if pull.topic == TOPIC and pull.sys_flag & COMMIT_OFFSET_FLAG:
                self.history.committed(member, pull.queue_id, pull.commit_offset)
        elif request.code == RequestCode.CONSUMER_SEND_MSG_BACK:
            back = read_header(SendMessageBackHeader, request.ext_fields)
            queue_id, number = map(int, (back.origin_msg_id or "").split("/"))
            self.history.sent_back((queue_id, number))
        elif request.code == RequestCode.SEND_MESSAGE_V2:
            queue_id, number = map(int, request.body.decode().split("/"))
            self.history.sent_back((queue_id, number))
