"""Provides clients for benchmarks that hold thousands of connections or pulls in one process: frames and nothing else.

Addresses of their own (127.0.0.2, …) for every `PORTS_PER_ADDRESS`, because one address has too few ports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from remoting.wire.codes import V4_9_4, LanguageCode
from remoting.wire.command import Command
from remoting.wire.frames import FrameReader, encode_frame

PORTS_PER_ADDRESS = 5_000
# Connected at once: below RocketMQ's accept backlog.
CONNECTING_AT_ONCE = 200


class RawClient(asyncio.Protocol):
    """`on_answer(client, answer, now_s)` hears of answers that nobody awaits; requests of the broker are dropped."""

    def __init__(self, on_answer: Callable[[RawClient, Command, float], None] | None = None) -> None:
        self._on_answer = on_answer
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader()
        self._waiting: dict[int, asyncio.Future[Command]] = {}
        self._opaque = 0
        self._transport: asyncio.Transport | None = None
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        now_s = self._loop.time()
        for command in self._reader.feed(data):
            if not command.is_response:
                continue
            waiting = self._waiting.pop(command.opaque, None)
            if waiting is not None:
                waiting.set_result(command)
            elif self._on_answer is not None:
                self._on_answer(self, command, now_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        for waiting in self._waiting.values():
            waiting.set_exception(ConnectionError(f"the broker closed the connection: {exc}"))

    def send(self, code: int, fields: dict[str, str], body: bytes = b"", opaque: int | None = None) -> int:
        """Sends a request and returns its opaque."""
        if opaque is None:
            self._opaque += 1
            opaque = self._opaque
        command = Command(
            code=code, opaque=opaque, language=LanguageCode.JAVA, version=V4_9_4, ext_fields=fields, body=body
        )
        assert self._transport is not None
        self._transport.write(encode_frame(command))
        return opaque

    async def ask(self, code: int, fields: dict[str, str], body: bytes = b"") -> Command:
        opaque = self.send(code, fields, body)
        waiting = self._waiting[opaque] = self._loop.create_future()
        return await waiting

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def connect_all(
    address: str, count: int, on_answer: Callable[[RawClient, Command, float], None] | None = None
) -> list[RawClient]:
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()

    async def one(number: int) -> RawClient:
        local = f"127.0.0.{2 + number // PORTS_PER_ADDRESS}"
        _, client = await loop.create_connection(lambda: RawClient(on_answer), host, int(port), local_addr=(local, 0))
        return client

    clients: list[RawClient] = []
    for start in range(0, count, CONNECTING_AT_ONCE):
        clients += await asyncio.gather(
            *(one(number) for number in range(start, min(count, start + CONNECTING_AT_ONCE)))
        )
    return clients


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
