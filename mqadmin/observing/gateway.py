"""The one door to brokers: what the console asks of a cluster, around the asyncio client.

A gateway belongs to the event loop that opened it with `async with`, and keeps its connections open until it is closed.
Synchronous code (a Celery task, an action) uses `ask`, which opens one for one call.

Every call is bounded: each request by its time-out, a sample by its deadline and its number of requests. A sample that
some brokers did not answer is still a sample: it comes with a `PartialError` that names them (nsq's `PartialErr`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeVar

from remoting.client.admin import Admin
from remoting.client.connections import REQUEST_TIMEOUT_MS, Connections
from remoting.client.errors import BrokerRefused, ClientError, ConnectionLost
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
# All requests of one change.
CHANGE_TIMEOUT_S = 60.0
# Of one topic, whose lag a preview asks for.
READERS_ASKED_MAX = 20
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


@dataclass(frozen=True, slots=True)
class Master:
    """A broker that takes changes."""

    name: str
    address: str
    cluster: str


@dataclass(frozen=True, slots=True)
class TopicOnBroker:
    """A topic as one broker has it now. `lag` by group; None where the broker does not say."""

    config: TopicConfig
    message_count: int
    lag: dict[str, int | None]


@dataclass(frozen=True, slots=True)
class ChangeFailure:
    """Why a change was not made. `is_unknown`: no answer came, so it may have been made."""

    reason: str
    is_unknown: bool


class _CountedConnections(Connections):
    """Counts what a cycle costs the brokers."""

    request_count = 0

    async def request(self, address: str, command: Command, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Command:
        self.request_count += 1
        return await super().request(address, command, timeout_ms)


def ask(namesrv: str, call: Callable[[Gateway], Awaitable[V]]) -> V:
    """Returns what `call` returns, with a gateway that is closed afterwards. For synchronous code."""

    async def run() -> V:
        async with Gateway(namesrv) as gateway:
            return await call(gateway)

    return asyncio.run(run())


class Gateway:
    """To one cluster by its name servers, "host:port;host:port"."""

    def __init__(self, namesrv: str) -> None:
        self._namesrv = namesrv
        self._connections = _CountedConnections()
        self._admin = Admin(self._connections, timeout_ms=int(REQUEST_TIMEOUT_S * 1000))

    async def __aenter__(self) -> Gateway:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connections.close()

    @property
    def request_count(self) -> int:
        """Requests sent so far."""
        return self._connections.request_count

    async def brokers(self) -> list[BrokerData]:
        """Returns the brokers by name. Raises GatewayError when no name server answers."""
        with _as_gateway_error():
            return await self._brokers()

    async def watch(
        self, address: str, *, boot: str, since: int, wait_ms: int
    ) -> tuple[WatchResponseHeader, WatchBody]:
        """Returns what changed on one of our brokers. Raises NotWatchable on another kind, GatewayError."""
        with _as_gateway_error():
            try:
                return await self._admin.our_broker.watch(address, boot, since, wait_ms)
            except BrokerRefused as error:
                if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                    raise NotWatchable(f"{address} does not know the watch request") from error
                raise

    async def tables(self, addresses: Iterable[str], failures: Failures) -> dict[str, BrokerTables]:
        """Returns those of all brokers that answer. Three requests per broker, more where tables come in pages."""
        return await _fan_out(dict.fromkeys(addresses, self._tables), str, failures)

    async def topic_stats(
        self, wanted: Iterable[tuple[str, str]], failures: Failures
    ) -> dict[tuple[str, str], dict[MessageQueue, TopicOffset]]:
        """Returns those of (address, topic). A topic that was deleted meanwhile is left out."""
        calls = dict.fromkeys(wanted, self._topic_stats)
        found = await _fan_out(calls, lambda pair: pair[0], failures)
        return {pair: stats for pair, stats in found.items() if stats is not None}

    async def consumer_connections(
        self, wanted: Iterable[tuple[str, str]], failures: Failures
    ) -> dict[tuple[str, str], ConsumerConnection | None]:
        """Returns those of (address, group); None: no member of the group is connected to that broker."""

        async def connection(pair: tuple[str, str]) -> ConsumerConnection | None:
            return await self._admin.clients.consumers(*pair)

        return await _fan_out(dict.fromkeys(wanted, connection), lambda pair: pair[0], failures)

    # changes, and what they rest on

    async def masters(self) -> list[Master]:
        """Returns the masters by name. Raises GatewayError when no name server answers."""
        return [
            Master(broker.broker_name, broker.master_addr, broker.cluster)
            for broker in await self.brokers()
            if broker.master_addr
        ]

    async def topic_configs(
        self, addresses: Iterable[str], topic: str, failures: Failures
    ) -> dict[str, TopicConfig | None]:
        """Returns the topic's settings by address; None where a broker doesn't have it."""

        async def config(address: str) -> TopicConfig | None:
            return await self._admin.topics.config(address, topic)

        return await _fan_out(dict.fromkeys(addresses, config), str, failures)

    async def topic_on_brokers(
        self, addresses: Iterable[str], topic: str, failures: Failures
    ) -> dict[str, TopicOnBroker | None]:
        """Returns what each broker has of the topic, its readers included; None where it doesn't have it."""

        async def contents(address: str) -> TopicOnBroker | None:
            return await self._topic_on_broker(address, topic)

        return await _fan_out(dict.fromkeys(addresses, contents), str, failures)

    async def topic_routes(self, topic: str, failures: Failures) -> dict[str, list[str]]:
        """Returns to which brokers each name server routes the topic; [] where it knows no route."""

        async def route(namesrv: str) -> list[str]:
            try:
                found = await self._admin.cluster.route(namesrv, topic)
            except BrokerRefused as error:
                if error.code == ResponseCode.TOPIC_NOT_EXIST:
                    return []
                raise
            return sorted(queues.broker_name for queues in found.queue_datas)

        servers = NameServers(self._namesrv, self._connections).addresses
        return await _fan_out(dict.fromkeys(servers, route), str, failures)

    async def create_topic(self, wanted: Mapping[str, TopicConfig]) -> dict[str, ChangeFailure]:
        """Creates or changes the topic at each address; returns where that failed."""

        async def create(address: str) -> None:
            await self._admin.topics.create(address, wanted[address])

        return await _changed(dict.fromkeys(wanted, create))

    async def delete_topic(self, addresses: Iterable[str], topic: str) -> dict[str, ChangeFailure]:
        """Deletes the topic on the brokers; returns where that failed."""

        async def delete(address: str) -> None:
            await self._admin.topics.delete(address, topic)

        return await _changed(dict.fromkeys(addresses, delete))

    async def delete_topic_route(self, servers: Iterable[str], topic: str, cluster: str) -> dict[str, ChangeFailure]:
        """Deletes the topic's route to the brokers of a cluster on the name servers; returns where that failed."""

        async def delete(namesrv: str) -> None:
            await self._admin.cluster.delete_route(namesrv, topic, cluster)

        return await _changed(dict.fromkeys(servers, delete))

    async def _topic_on_broker(self, address: str, topic: str) -> TopicOnBroker | None:
        config = await self._admin.topics.config(address, topic)
        if config is None:
            return None
        ends = await self._admin.topics.stats(address, topic)
        lag: dict[str, int | None] = dict.fromkeys(sorted(await self._admin.topics.groups(address, topic)))
        for group in list(lag)[:READERS_ASKED_MAX]:
            lag[group] = await self._lag(address, group, topic)
        count = sum(queue.max_offset - queue.min_offset for queue in ends.values())
        return TopicOnBroker(config, count, lag)

    async def _lag(self, address: str, group: str, topic: str) -> int | None:
        try:
            stats = await self._admin.offsets.consume_stats(address, group, topic)
        except BrokerRefused:
            return None
        return sum(max(0, queue.broker_offset - queue.consumer_offset) for queue in stats.queues.values())

    # single requests

    async def _brokers(self) -> list[BrokerData]:
        servers = NameServers(self._namesrv, self._connections)
        command = Command(code=RequestCode.GET_BROKER_CLUSTER_INFO)
        answer = await servers.request(command, timeout_ms=int(REQUEST_TIMEOUT_S * 1000))
        if answer.code != ResponseCode.SUCCESS:
            raise NameServersUnreachable([BrokerRefused(str(servers), command.code, answer.code, answer.remark)])
        table = read_body(ClusterInfo, answer.body).broker_addr_table
        return sorted(table.values(), key=lambda broker: broker.broker_name)

    async def _tables(self, address: str) -> BrokerTables:
        topics = await self._admin.topics.table(address)
        groups = await self._admin.groups.table(address)
        committed = await self._admin.offsets.all_committed(address)
        return BrokerTables(topics.topic_config_table, groups.subscription_group_table, committed)

    async def _topic_stats(self, pair: tuple[str, str]) -> dict[MessageQueue, TopicOffset] | None:
        try:
            return await self._admin.topics.stats(*pair)
        except BrokerRefused as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            raise


@contextmanager
def _as_gateway_error() -> Iterator[None]:
    try:
        yield
    except (ClientError, WireError, ValueError) as error:
        raise GatewayError(str(error)) from error


async def _changed(calls: Mapping[str, Callable[[str], Awaitable[None]]]) -> dict[str, ChangeFailure]:
    """Makes all changes, few at once; returns those that failed. All together take CHANGE_TIMEOUT_S at most."""
    failures: dict[str, ChangeFailure] = {}
    slots = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def change(address: str, call: Callable[[str], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(CHANGE_TIMEOUT_S), slots:
                await call(address)
        except (ConnectionLost, TimeoutError) as error:
            reason = str(error) or f"{address} did not answer within {CHANGE_TIMEOUT_S:.0f} s"
            failures[address] = ChangeFailure(reason, is_unknown=True)
        except (ClientError, WireError) as error:
            failures[address] = ChangeFailure(str(error), is_unknown=False)

    await asyncio.gather(*(change(address, call) for address, call in calls.items()))
    return failures


async def _fan_out(
    calls: Mapping[K, Callable[[K], Awaitable[V]]], address_of: Callable[[K], str], failures: Failures
) -> dict[K, V]:
    """Makes all calls, few at once; a broker that failed once is not asked again in this round."""
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
