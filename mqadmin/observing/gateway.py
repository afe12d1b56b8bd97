"""The one door to brokers: synchronous calls for Django and Celery, around the asyncio client.

A gateway owns one event loop and drives it only while a call is under way (`asyncio.Runner`): connections stay open
between the calls of one cycle or one follower, there is no thread to hand work to, and what arrives between two calls
waits in the socket. So a gateway belongs to one thread, and to whoever opened it with `with`.

Every call is bounded: each request by its time-out, a sample by its deadline and its number of requests. A sample that
some brokers did not answer is still a sample: it comes with a `PartialError` that names them (nsq's `PartialErr`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from remoting.client.admin import Admin
from remoting.client.connections import REQUEST_TIMEOUT_MS, Connections
from remoting.client.errors import BrokerRefused, ClientError
from remoting.client.name_servers import NameServers, NameServersUnreachable
from remoting.wire.bodies.consume_stats import CommittedOffsets
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.groups import ConsumerConnection, SubscriptionGroupConfig
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import BrokerData, ClusterInfo
from remoting.wire.bodies.topics import TopicConfig, TopicOffset
from remoting.wire.bodies.watch import WatchBody
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import WireError
from remoting.wire.headers.watch import WatchResponseHeader

REQUEST_TIMEOUT_S = 5.0
# A whole sample; brokers that answered by then count.
SAMPLE_TIMEOUT_S = 20.0
# Requests in flight at once: a sample must not crowd out a broker's clients.
IN_FLIGHT_MAX = 8

K = TypeVar("K")
V = TypeVar("V")


class GatewayError(Exception):
    """Nothing could be learned; the text names the address and what is wrong with it."""


class NotWatchable(GatewayError):
    """The broker answers, and does not know the watch request: it is Apache's."""


class PartialError(GatewayError):
    """Some brokers did not answer: address → why."""

    def __init__(self, failures: Mapping[str, str]) -> None:
        super().__init__("; ".join(failures.values()))
        self.failures = dict(failures)


@dataclass(frozen=True, slots=True)
class BrokerTables:
    """What one broker knows: topics, groups, committed offsets."""

    topics: dict[str, TopicConfig]
    groups: dict[str, SubscriptionGroupConfig]
    committed: CommittedOffsets


@dataclass(slots=True)
class Failures:
    """Why which address did not answer; the first reason is kept."""

    reasons: dict[str, str] = field(default_factory=dict)

    def note(self, address: str, error: Exception) -> None:
        self.reasons.setdefault(address, str(error) or type(error).__name__)

    def error(self) -> PartialError | None:
        return PartialError(self.reasons) if self.reasons else None


class _CountedConnections(Connections):
    """Counts what a cycle costs the brokers."""

    request_count = 0

    async def request(self, address: str, command: Command, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Command:
        self.request_count += 1
        return await super().request(address, command, timeout_ms)


class Gateway:
    """To one cluster by its name servers, "host:port;host:port"."""

    def __init__(self, namesrv: str) -> None:
        self._namesrv = namesrv
        self._runner = asyncio.Runner()
        self._connections = _CountedConnections()
        self._admin = Admin(self._connections, timeout_ms=int(REQUEST_TIMEOUT_S * 1000))

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._connections.close())
        self._runner.close()

    @property
    def request_count(self) -> int:
        """Requests sent so far."""
        return self._connections.request_count

    def brokers(self) -> list[BrokerData]:
        """By name. Raises GatewayError when no name server answers."""
        return self._run(self._brokers())

    def watch(self, address: str, *, boot: str, since: int, wait_ms: int) -> tuple[WatchResponseHeader, WatchBody]:
        """What changed on one of our brokers. Raises NotWatchable on another kind, GatewayError."""
        try:
            return self._run(self._admin.watch(address, boot, since, wait_ms))
        except BrokerRefused as error:
            if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise NotWatchable(f"{address} does not know the watch request") from error
            raise GatewayError(str(error)) from error

    def tables(self, addresses: Iterable[str], failures: Failures) -> dict[str, BrokerTables]:
        """Of all brokers that answer. Three requests per broker, more where tables come in pages."""
        return self._fan_out(dict.fromkeys(addresses, self._tables), str, failures)

    def topic_stats(
        self, wanted: Iterable[tuple[str, str]], failures: Failures
    ) -> dict[tuple[str, str], dict[MessageQueue, TopicOffset]]:
        """Of (address, topic). A topic that was deleted meanwhile is left out."""
        calls = dict.fromkeys(wanted, self._topic_stats)
        found = self._fan_out(calls, lambda pair: pair[0], failures)
        return {pair: stats for pair, stats in found.items() if stats is not None}

    def consumer_connections(
        self, wanted: Iterable[tuple[str, str]], failures: Failures
    ) -> dict[tuple[str, str], ConsumerConnection | None]:
        """Of (address, group); None: nobody of the group is connected to that broker."""

        async def ask(pair: tuple[str, str]) -> ConsumerConnection | None:
            return await self._admin.consumer_connection(*pair)

        return self._fan_out(dict.fromkeys(wanted, ask), lambda pair: pair[0], failures)

    # how it is asked

    def _run(self, call: Coroutine[Any, Any, V]) -> V:
        try:
            return self._runner.run(call)
        except BrokerRefused:
            raise
        except (ClientError, WireError, ValueError) as error:
            raise GatewayError(str(error)) from error

    def _fan_out(
        self,
        calls: Mapping[K, Callable[[K], Awaitable[V]]],
        address_of: Callable[[K], str],
        failures: Failures,
    ) -> dict[K, V]:
        return self._runner.run(_fan_out(calls, address_of, failures))

    async def _brokers(self) -> list[BrokerData]:
        servers = NameServers(self._namesrv, self._connections)
        command = Command(code=RequestCode.GET_BROKER_CLUSTER_INFO)
        answer = await servers.request(command, timeout_ms=int(REQUEST_TIMEOUT_S * 1000))
        if answer.code != ResponseCode.SUCCESS:
            raise NameServersUnreachable([BrokerRefused(str(servers), command.code, answer.code, answer.remark)])
        table = read_body(ClusterInfo, answer.body).broker_addr_table
        return sorted(table.values(), key=lambda broker: broker.broker_name)

    async def _tables(self, address: str) -> BrokerTables:
        topics = await self._admin.topic_table(address)
        groups = await self._admin.group_table(address)
        committed = await self._admin.all_offsets(address)
        return BrokerTables(topics.topic_config_table, groups.subscription_group_table, committed)

    async def _topic_stats(self, pair: tuple[str, str]) -> dict[MessageQueue, TopicOffset] | None:
        try:
            return await self._admin.topic_stats(*pair)
        except BrokerRefused as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            raise


async def _fan_out(
    calls: Mapping[K, Callable[[K], Awaitable[V]]], address_of: Callable[[K], str], failures: Failures
) -> dict[K, V]:
    """All calls, few at once; a broker that failed once is not asked again in this round."""
    answers: dict[K, V] = {}
    slots = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def ask(key: K, call: Callable[[K], Awaitable[V]]) -> None:
        async with slots:
            address = address_of(key)
            if address in failures.reasons:
                return
            try:
                answers[key] = await call(key)
            except (ClientError, WireError) as error:
                failures.note(address, error)

    tasks = {asyncio.ensure_future(ask(key, call)): address_of(key) for key, call in calls.items()}
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=SAMPLE_TIMEOUT_S)
        for task in late:
            task.cancel()
            failures.note(tasks[task], TimeoutError(f"{tasks[task]} did not answer within {SAMPLE_TIMEOUT_S:.0f} s"))
        # Raises what is our own mistake, after all have ended.
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
    return answers
