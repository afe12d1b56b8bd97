"""The core of all admin calls: sends one request, waits for its turn before, and reads a refusal.

A tool must not crowd out a broker's clients, nor other tools: how many requests are in flight is bounded per server and
in total. What a server doesn't know raises NotSupported with its version.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from remoting.client.admin.table_pages import PAGES_MAX, TABLE_BYTES_MAX, Paging, next_page
from remoting.client.connections import Connections
from remoting.client.errors import BrokerRefused, NotSupported, NoTurn
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Body, Command
from remoting.wire.errors import BodyError
from remoting.wire.headers.typed import Header, write_header

# `DefaultMQAdminExt`.
ADMIN_TIMEOUT_MS = 5000
# The broker itself waits for the client that it relays a request to: 10 s with 307 and 309, 5 s with 221.
RELAYED_TIMEOUT_MS = 12_000
# Added to the time that a parked request asks the broker to wait.
PARKED_GRACE_MS = 5000
# From here on an answer is read in a thread: 16 MiB of fastjson's dialect take about a second.
ASIDE_BYTES_MIN = 256 * 1024
_SUCCESS = (ResponseCode.SUCCESS,)
RELAYED = frozenset(
    {
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
    }
)


R = TypeVar("R")


async def read_aside(read: Callable[[Body], R], body: Body) -> R:
    """Returns what `read` makes of a body; one that may be large must not keep the event loop waiting."""
    if len(body) < ASIDE_BYTES_MIN:
        return read(body)
    return await asyncio.to_thread(read, body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many requests of one `Admin` are in flight at once.

    `per_server`, `relayed_per_server`: an Apache broker works on all tools' requests with 16 threads
    (`adminBrokerThreadPoolNums`), and one that is relayed to a client keeps its thread until the client answers. Four
    and two leave room for one more of us and for other tools, and clients that are gone never block the other calls.
    `in_total`: what one process reads and keeps in memory at the same time, whatever the number of brokers.
    `turn_timeout_ms`: for a turn; beyond it NoTurn is raised, and nothing was sent.
    """

    per_server: int = 4
    relayed_per_server: int = 2
    in_total: int = 64
    turn_timeout_ms: int = 30_000


class Requests:
    """Lives on one event loop. A parked request takes no turn: its caller has one of them at a time."""

    def __init__(self, connections: Connections, timeout_ms: int, limits: Limits) -> None:
        self._connections = connections
        self._timeout_ms = timeout_ms
        self._limits = limits
        self._in_total = asyncio.Semaphore(limits.in_total)
        self._turns: dict[tuple[str, bool], _Turns] = {}

    async def ask(
        self,
        address: str,
        code: int,
        header: Header | None = None,
        *,
        body: Body = b"",
        about: str = "",
        timeout_ms: int | None = None,
        turn_timeout_ms: int | None = None,
        accepted: Collection[int] = _SUCCESS,
    ) -> Command:
        """Returns the answer of success, or with another of the `accepted` codes.

        `about` names in an error what the request concerned. `turn_timeout_ms`: other than the limits'.

        Raises BrokerRefused, NotSupported, NoTurn, NotConnected, ConnectionLost, RequestTimedOut.
        """
        fields = write_header(header) if header is not None else {}
        request = Command(code=code, ext_fields=fields, body=body)
        async with self._turn(address, code, turn_timeout_ms):
            return await self._send(address, request, about, timeout_ms or self._timeout_ms, accepted)

    async def ask_relayed(
        self, address: str, code: RequestCode, header: Header, *, about: str, turn_timeout_ms: int | None = None
    ) -> Command:
        """Returns the answer of the client that the broker passed the request on to."""
        return await self.ask(
            address, code, header, about=about, timeout_ms=RELAYED_TIMEOUT_MS, turn_timeout_ms=turn_timeout_ms
        )

    async def ask_parked(self, address: str, code: int, header: Header, wait_ms: int, about: str = "") -> Command:
        """Returns the answer that the broker may hold back for `wait_ms`; takes no turn."""
        request = Command(code=code, ext_fields=write_header(header))
        return await self._send(address, request, about, wait_ms + PARKED_GRACE_MS)

    async def pages(self, address: str, code: int, paging: Paging) -> AsyncIterator[Body]:
        """Yields the bodies of all pages; one for servers that do not page.

        Raises BodyError beyond TABLE_BYTES_MAX or PAGES_MAX.
        """
        fields: dict[str, str] | None = {}
        size_bytes = page_count = 0
        while fields is not None:
            page_count += 1
            if page_count > PAGES_MAX:
                raise BodyError(f"{address}: {paging.table} has no end after {PAGES_MAX} pages")
            async with self._turn(address, code):
                answer = await self._send(address, Command(code=code, ext_fields=fields), "", self._timeout_ms)
            size_bytes += len(answer.body)
            if size_bytes > TABLE_BYTES_MAX:
                raise BodyError(f"{address}: {paging.table} has more than {TABLE_BYTES_MAX} bytes")
            yield answer.body
            fields = await read_aside(partial(_next_page, paging, fields, answer), answer.body)

    async def _send(
        self, address: str, request: Command, about: str, timeout_ms: int, accepted: Collection[int] = _SUCCESS
    ) -> Command:
        answer = await self._connections.request(address, request, timeout_ms)
        if answer.code in accepted:
            return answer
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise NotSupported(address, request.code, answer.version, answer.remark, about)
        raise BrokerRefused(address, request.code, answer.code, answer.remark, about)

    @asynccontextmanager
    async def _turn(self, address: str, code: int, timeout_ms: int | None = None) -> AsyncIterator[None]:
        """Waits for the server's turn before the total's: who waits for a slow server keeps nobody else waiting."""
        if timeout_ms is None:
            timeout_ms = self._limits.turn_timeout_ms
        key = address, code in RELAYED
        turns = self._turns.get(key)
        if turns is None:
            count = self._limits.relayed_per_server if code in RELAYED else self._limits.per_server
            turns = self._turns[key] = _Turns(asyncio.Semaphore(count))
        turns.users += 1
        try:
            await _acquire(address, turns.free, timeout_ms)
            try:
                await _acquire(address, self._in_total, timeout_ms)
                try:
                    yield
                finally:
                    self._in_total.release()
            finally:
                turns.free.release()
        finally:
            turns.users -= 1
            if not turns.users:  # servers come and go; what is kept for them does not grow
                del self._turns[key]


async def _acquire(address: str, free: asyncio.Semaphore, timeout_ms: int) -> None:
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await free.acquire()
    except TimeoutError as error:
        raise NoTurn(address, timeout_ms) from error


def _next_page(paging: Paging, fields: dict[str, str], answer: Command, _: Body) -> dict[str, str] | None:
    return next_page(paging, fields, answer)


@dataclass(slots=True)
class _Turns:
    """`users` hold a turn, or wait for one."""

    free: asyncio.Semaphore
    users: int = 0
