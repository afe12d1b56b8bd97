"""Several processes in one virtual time: an event loop each, joined by a network that a test can cut, hold and close.

Only ready callbacks run; when there are none, the time moves to the next timer of any machine that is not paused. What
is sent arrives in the next turn of the other machine's loop.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from typing import Any

from tests.support.virtual_time import VirtualLoop, VirtualTime

# Turns that a killed process's tasks get to unwind; nobody sees what they do.
UNWINDING_TURNS = 50
# Turns without any time passing, after which something is taken to run for ever.
TURNS_MAX = 200_000

# Takes the wire and the port that it leads to.
Accept = Callable[["Wire", int], asyncio.Protocol]


class End(asyncio.Transport):
    """One end of a wire. What is written waits in `in_flight` while the wire is held."""

    def __init__(self, wire: Wire, loop: asyncio.AbstractEventLoop, peer: tuple[str, int]) -> None:
        super().__init__({"peername": peer})
        self.wire = wire
        self.loop = loop
        self.protocol: asyncio.Protocol | None = None
        self.other: End | None = None
        self.in_flight = bytearray()
        self.is_lost = False
        self._is_closing = False

    def write(self, data: Any) -> None:
        if not self.is_lost and not self.wire.is_dead:
            self.in_flight += data
            self.arrive_soon()

    def arrive_soon(self) -> None:
        assert self.other is not None
        if not self.wire.is_held and not self.other.loop.is_closed():
            self.other.loop.call_soon(self._arrive)

    def _arrive(self) -> None:
        other = self.other
        assert other is not None
        if self.wire.is_held or other.is_lost or not self.in_flight:
            return
        data, self.in_flight = bytes(self.in_flight), bytearray()
        assert other.protocol is not None
        if self.wire.tap is not None and other is self.wire.server:
            self.wire.tap(data)
        other.protocol.data_received(data)
        if self._is_closing:
            self.wire.lose(None)

    def lose(self, error: Exception | None) -> None:
        if not self.is_lost and not self.loop.is_closed():
            self.loop.call_soon(self._lost, error)

    def _lost(self, error: Exception | None) -> None:
        if not self.is_lost and self.protocol is not None:
            self.is_lost = self._is_closing = True
            self.protocol.connection_lost(error)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_reading(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True
        if not self.in_flight:
            self.wire.lose(None)

    def abort(self) -> None:
        self._is_closing = True
        self.wire.lose(None)


class Wire:
    """`tap` sees what arrives at the server's end."""

    def __init__(self, machine: Machine, server_loop: asyncio.AbstractEventLoop, port: int) -> None:
        self.machine = machine
        self.is_held = False
        self.is_dead = False
        self.tap: Callable[[bytes], None] | None = None
        self.client = End(self, machine.loop, ("127.0.0.1", port))
        self.server = End(self, server_loop, ("127.0.0.1", 40_000))
        self.client.other, self.server.other = self.server, self.client

    def lose(self, error: Exception | None) -> None:
        """Both ends hear of it; what was in flight is lost."""
        if not self.is_dead:
            self.is_dead = True
            self.client.lose(error)
            self.server.lose(error)

    def cut(self) -> None:
        self.client.in_flight.clear()
        self.server.in_flight.clear()
        self.lose(ConnectionResetError("cut by the test"))

    def hold(self) -> None:
        self.is_held = True

    def release(self) -> None:
        self.is_held = False
        for end in (self.client, self.server):
            if end.in_flight:
                end.arrive_soon()


class MachineLoop(VirtualLoop):
    """Connects to the network of the machines instead of sockets."""

    def __init__(self, time: VirtualTime, machine: Machine) -> None:
        super().__init__(time)
        self._machine = machine

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.Protocol], _host: str, port: int, **_: Any
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        await asyncio.sleep(0)
        end = self._machine.connect(port)
        end.protocol = protocol_factory()
        end.protocol.connection_made(end)
        return end, end.protocol


class Machine:
    """One process. `is_paused`: as after SIGSTOP; nothing of it runs, and what arrives waits."""

    def __init__(self, machines: Machines, name: str) -> None:
        self._machines = machines
        self.name = name
        self.is_paused = False
        self.is_killed = False
        self.is_cut_off = False
        self.wires: list[Wire] = []
        self.loop = MachineLoop(machines.time, self)

    def begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Starts a task on this machine; it runs when time passes."""
        return self.loop.create_task(work)

    def connect(self, port: int) -> End:
        if self.is_killed or self.is_cut_off:
            raise OSError(113, "No route to host")
        wire = self._machines.wire(self, port)
        self.wires = [one for one in self.wires if not one.is_dead] + [wire]
        return wire.client

    def kill(self) -> None:
        """As by SIGKILL: its connections are reset, and nothing that it does from now on is seen."""
        self.is_killed = True
        for wire in self.wires:
            wire.cut()
        for _ in range(UNWINDING_TURNS):
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            if not asyncio.all_tasks(self.loop):
                break
            self._machines.turn(self.loop)
        self.loop.drop()

    def cut(self) -> None:
        for wire in self.wires:
            wire.cut()

    def hold(self) -> None:
        for wire in self.wires:
            wire.hold()

    def release(self) -> None:
        for wire in self.wires:
            wire.release()


class Machines:
    """`accept` makes the server's end of a new connection; `server_loop` is where it runs, None while it is down."""

    def __init__(self, time: VirtualTime, server_loop: Callable[[], VirtualLoop | None], accept: Accept) -> None:
        self.time = time
        self._server_loop = server_loop
        self._accept = accept
        self.all: list[Machine] = []

    def add(self, name: str) -> Machine:
        machine = Machine(self, name)
        self.all.append(machine)
        return machine

    def wire(self, machine: Machine, port: int) -> Wire:
        loop = self._server_loop()
        if loop is None:
            raise ConnectionRefusedError(111, "Connection refused")
        wire = Wire(machine, loop, port)
        wire.server.protocol = self._accept(wire, port)
        loop.call_soon(wire.server.protocol.connection_made, wire.server)
        return wire

    def server_lost(self) -> None:
        """Every connection to it is reset."""
        for machine in self.all:
            machine.cut()

    def pass_s(self, seconds: float) -> None:
        self.run_until(lambda: False, seconds)

    def run_until(self, condition: Callable[[], bool], within_s: float) -> bool:
        """Returns True as soon as `condition` holds, False when `within_s` have passed."""
        end_s = self.time.now_s + within_s
        turns = 0
        while not condition():
            if self._turn_all():
                turns += 1
                assert turns < TURNS_MAX, f"something runs for ever at {self.time.now_s}: {self._ready()}"
                continue
            turns = 0
            due_s = min((_due_s(loop) for loop in self._loops()), default=float("inf"))
            if due_s > end_s:
                self.time.now_s = end_s
                return condition()
            self.time.now_s = max(self.time.now_s, due_s)
        return True

    def turn(self, loop: VirtualLoop) -> None:
        """Runs what is ready, once."""
        loop.call_soon(loop.stop)
        loop.run_forever()

    def _turn_all(self) -> bool:
        busy = [loop for loop in self._loops() if loop._ready or _due_s(loop) <= self.time.now_s]  # type: ignore[attr-defined]
        for loop in busy:
            self.turn(loop)
        return bool(busy)

    def _loops(self) -> list[VirtualLoop]:
        loops: list[VirtualLoop] = [one.loop for one in self.all if not one.is_paused and not one.is_killed]
        server = self._server_loop()
        return loops if server is None else [server, *loops]

    def _ready(self) -> list[str]:
        return [f"{loop._ready}" for loop in self._loops() if loop._ready]  # type: ignore[attr-defined]


def _due_s(loop: VirtualLoop) -> float:
    """Returns when the loop's next timer is due."""
    scheduled = loop._scheduled  # type: ignore[attr-defined]
    while scheduled and scheduled[0].cancelled():
        handle = heapq.heappop(scheduled)
        handle._scheduled = False
        loop._timer_cancelled_count -= 1  # type: ignore[attr-defined]
    return scheduled[0].when() if scheduled else float("inf")
