"""A whole broker without sockets, threads or waiting: real parts and frames, virtual time, a disk of the test's choice.

`SimulatedBroker` is the machine: it can be started, stopped, killed and started again; its folder and its time stay.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

from broker.engine.broker import Broker
from broker.engine.config import BrokerConfig
from broker.engine.pipeline import fill_tables
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.levels import parse_levels
from broker.engine.serving.request_table import RequestTable
from broker.engine.settings import Settings
from broker.engine.store.files import FileLayer
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import StoreConfig
from remoting.complaints import ComplaintLog
from remoting.server_connection import ServerConnection
from remoting.wire.codes import OUR_VERSION
from remoting.wire.command import Command
from remoting.wire.frames import FrameReader, encode_frame
from tests.support.stores import abandon
from tests.support.virtual_time import VirtualLoop, VirtualTime


class QuickFiles(FileLayer):
    """For histories that are killed but never lose power: what the system has, stays."""

    def fdatasync(self, descriptor: int) -> None:  # type: ignore[override]
        pass


class _Transport(asyncio.Transport):
    """The other end is a `SimulatedClient`."""

    def __init__(self, client: SimulatedClient) -> None:
        super().__init__({"peername": ("127.0.0.1", client.port)})
        self._client = client
        self._is_closing = False

    def write(self, data: Any) -> None:
        self._client.arrived(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    abort = close


class SimulatedClient:
    """One connection. `requests` are what the broker asked of it, oldest first."""

    _ports = itertools.count(40_000)

    def __init__(self, name: str, loop: VirtualLoop, table: RequestTable) -> None:
        self.name = name
        self.port = 40_000 + next(self._ports) % 20_000
        self.requests: list[Command] = []
        self._answers: dict[int, Command] = {}
        self._opaques = itertools.count(1)
        self._reader = FrameReader()
        self._loop = loop

        async def connect() -> ServerConnection:
            connection = ServerConnection(table)
            connection.connection_made(_Transport(self))
            return connection

        self.connection = loop.run(connect())

    def arrived(self, data: bytes) -> None:
        for command in self._reader.feed(data):
            if command.is_response:
                self._answers[command.opaque] = command
            else:
                self.requests.append(command)

    def send(self, code: int, body: bytes = b"", flag: int = 0, **fields: object) -> int:
        """The opaque of a request that was sent; its answer is had by `answer`."""
        ext_fields = {name: str(value) for name, value in fields.items() if value is not None}
        opaque = next(self._opaques)
        command = Command(code=code, opaque=opaque, flag=flag, version=OUR_VERSION, ext_fields=ext_fields, body=body)
        frame = encode_frame(command)

        async def receive() -> None:
            self.connection.data_received(frame)

        self._loop.run(receive())
        self._loop.settle()
        return opaque

    def answer(self, opaque: int) -> Command | None:
        """None while there is none. To be had once."""
        return self._answers.pop(opaque, None)

    def ask(self, code: int, body: bytes = b"", **fields: object) -> Command:
        answer = self.answer(self.send(code, body, **fields))
        assert answer is not None, f"no answer to {code}"
        return answer

    def hang_up(self) -> None:
        async def lose() -> None:
            self.connection.connection_lost(None)

        self._loop.run(lose())
        self._loop.settle()


class SimulatedBroker:
    def __init__(self, folder: Path, store_config: StoreConfig, files: FileLayer, **settings: Any) -> None:
        self.time = VirtualTime()
        self.config = BrokerConfig(store=folder, port=10_911, flush=store_config.flush, **settings)
        self._store_config = store_config
        self._files = files
        self.start()

    def start(self) -> None:
        self.loop = VirtualLoop(self.time)
        levels = LevelHistory(self.config.store / "config", parse_levels(self.config.delay_levels))
        store_config = replace(self._store_config, delay_levels_at=levels.delays_ms_at)
        self.store = MessageStore.open(self.config.store, store_config, self.time.wall_ms, self._files)
        self._table = RequestTable("simulated broker")
        self._name_server_table = RequestTable("simulated name server")

        async def start() -> None:
            self.broker = Broker(
                config=self.config,
                settings=Settings(self.config, ComplaintLog()),
                levels=levels,
                store=self.store,
                complaints=ComplaintLog(),
                clock=self.time.wall_ms,
            )
            self.broker.start()
            fill_tables(self._table, self._name_server_table, self.broker)

        self.loop.run(start())
        self.loop.settle()

    def connect(self, name: str) -> SimulatedClient:
        return SimulatedClient(name, self.loop, self._table)

    def accept(self, port: int) -> ServerConnection:
        """A connection to the broker's port or else to its name server's, for a transport of the caller's."""
        return ServerConnection(self._table if port == self.config.port else self._name_server_table)

    def stop(self) -> None:
        self.loop.run(self.broker.stop())
        self.store.close()
        self.loop.drop()

    def kill(self) -> None:
        abandon(self.store)
        self.loop.drop()
