"""A gateway to one cluster: its brokers, and what observing asks of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeVar

from mqadmin.observing.gateway.broker_settings import BrokerRequests
from mqadmin.observing.gateway.clients import ClientRequests
from mqadmin.observing.gateway.counting import Costs, CountedConnections
from mqadmin.observing.gateway.failures import Failures, GatewayError, NotWatchable, as_gateway_error
from mqadmin.observing.gateway.fan_out import SAMPLE_TIMEOUT_S, fan_out
from mqadmin.observing.gateway.groups import GroupRequests
from mqadmin.observing.gateway.members import MemberRequests
from mqadmin.observing.gateway.messages import MessageRequests
from mqadmin.observing.gateway.probing import Probing
from mqadmin.observing.gateway.retries import RetryRequests
from mqadmin.observing.gateway.runtime import MemberStatus, Runtime, StatsKey, member_status, rate_of, runtime_of
from mqadmin.observing.gateway.sending import SendRequests
from mqadmin.observing.gateway.topics import TopicRequests
from remoting.client.admin import Admin
from remoting.client.errors import BrokerRefused
from remoting.client.name_servers import NameServers
from remoting.wire.bodies.consume_stats import CommittedOffsets
from remoting.wire.bodies.groups import ConsumerConnection, SubscriptionGroupConfig
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import BrokerData
from remoting.wire.bodies.topics import TopicConfig, TopicOffset
from remoting.wire.bodies.watch import WatchBody
from remoting.wire.codes import ResponseCode
from remoting.wire.headers.watch import WatchResponseHeader

REQUEST_TIMEOUT_S = 5.0

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class BrokerTables:
    """What one broker knows: topics, groups, committed offsets."""

    topics: dict[str, TopicConfig]
    groups: dict[str, SubscriptionGroupConfig]
    committed: CommittedOffsets


@dataclass(frozen=True, slots=True)
class KnownBrokers:
    """What the name servers list, by name; of a broker that they list differently, what the first of them says.

    `silent`: name servers that did not answer, with the reason. `contested`: name of a broker → the addresses of its
    master, where they list more than one.
    """

    brokers: list[BrokerData]
    silent: dict[str, str] = field(default_factory=dict)
    contested: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Master:
    """A broker that takes changes."""

    name: str
    address: str
    cluster: str


def ask(
    namesrv: str,
    call: Callable[[Gateway], Awaitable[V]],
    costs: Costs | None = None,
    *,
    remembered: Sequence[Master] = (),
) -> V:
    """Returns what `call` returns, with a gateway that is closed afterwards. For synchronous code."""
    answers: list[V] = []

    async def run() -> None:
        # Not as the task's result: `asyncio.run` writes out that of its task, when it takes back its signal handler.
        async with Gateway(namesrv, costs, remembered=remembered) as gateway:
            answers.append(await call(gateway))

    asyncio.run(run())
    return answers[0]


class Gateway:
    """To one cluster by its name servers, "host:port;host:port". Requests are counted in `costs`.

    `remembered` are masters that were seen before: where a name server is silent, those that no other one lists still
    count, so that a change says what became of them.
    """

    def __init__(self, namesrv: str, costs: Costs | None = None, *, remembered: Sequence[Master] = ()) -> None:
        self._namesrv = namesrv
        self._remembered = remembered
        self._connections = CountedConnections(costs if costs is not None else Costs())
        self._admin = Admin(self._connections, timeout_ms=int(REQUEST_TIMEOUT_S * 1000))

    async def __aenter__(self) -> Gateway:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connections.close()

    @property
    def request_count(self) -> int:
        """Returns the number of requests sent so far."""
        return self._connections.request_count

    @property
    def topics(self) -> TopicRequests:
        """Returns the requests about topics. Raises GatewayError for name servers that are no addresses."""
        with as_gateway_error():
            return TopicRequests(self._admin, NameServers(self._namesrv, self._connections).addresses)

    @property
    def probing(self) -> Probing:
        """What is behind the name servers. Raises GatewayError for name servers that are no addresses."""
        with as_gateway_error():
            return Probing(self._admin, NameServers(self._namesrv, self._connections).addresses)

    @property
    def broker_settings(self) -> BrokerRequests:
        """What concerns brokers. Raises GatewayError for name servers that are no addresses."""
        with as_gateway_error():
            return BrokerRequests(self._admin, NameServers(self._namesrv, self._connections).addresses)

    @property
    def clients(self) -> ClientRequests:
        """Returns the requests about connected clients."""
        return ClientRequests(self._admin)

    @property
    def groups(self) -> GroupRequests:
        """Returns the requests about groups."""
        return GroupRequests(self._admin)

    @property
    def members(self) -> MemberRequests:
        """Returns the questions to members of groups."""
        return MemberRequests(self._admin)

    @property
    def messages(self) -> MessageRequests:
        """Returns the requests about messages."""
        return MessageRequests(self._admin)

    @property
    def retries(self) -> RetryRequests:
        """Returns the requests about messages that wait to be retried."""
        return RetryRequests(self._admin)

    @property
    def sending(self) -> SendRequests:
        """Returns what sends messages. Raises GatewayError for name servers that are no addresses."""
        with as_gateway_error():
            return SendRequests(self._connections, self._admin, NameServers(self._namesrv, self._connections).addresses)

    async def brokers(self) -> list[BrokerData]:
        """Returns the brokers by name. Raises GatewayError when no name server answers."""
        return (await self.known_brokers()).brokers

    async def known_brokers(self) -> KnownBrokers:
        """Returns what all name servers together list: each of our brokers is known to its own name server alone.

        Raises GatewayError when none answers.
        """
        failures = Failures()
        with as_gateway_error():
            addresses = NameServers(self._namesrv, self._connections).addresses
        found = await fan_out(dict.fromkeys(addresses, self._admin.cluster.info), str, failures)
        if not found:
            reasons = "; ".join(failures.reasons.values())
            raise GatewayError(f"no name server answers ({reasons}): start one, or correct the address")
        tables = [found[address].broker_addr_table for address in addresses if address in found]
        known: dict[str, BrokerData] = {}
        masters: dict[str, dict[str, None]] = {}
        for table in tables:
            for name, broker in table.items():
                known.setdefault(name, broker)
                if broker.master_addr:
                    masters.setdefault(name, {})[broker.master_addr] = None
        contested = {name: tuple(found) for name, found in masters.items() if len(found) > 1}
        return KnownBrokers([known[name] for name in sorted(known)], failures.reasons, contested)

    async def watch(
        self, address: str, *, boot: str, since: int, wait_ms: int
    ) -> tuple[WatchResponseHeader, WatchBody]:
        """Returns what changed on one of our brokers. Raises NotWatchable on another kind, GatewayError."""
        with as_gateway_error():
            try:
                return await self._admin.our_broker.watch(address, boot, since, wait_ms)
            except BrokerRefused as error:
                if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                    raise NotWatchable(f"{address} does not know the watch request") from error
                raise

    async def ours_among(self, addresses: Iterable[str]) -> list[str]:
        """Returns those of the addresses at which a broker of ours answers."""
        is_at = self._admin.our_broker.is_at
        found = await fan_out(dict.fromkeys(addresses, is_at), str, Failures())
        return [address for address, is_ours in found.items() if is_ours]

    async def tables(self, addresses: Iterable[str], failures: Failures) -> dict[str, BrokerTables]:
        """Returns those of all brokers that answer. Three requests per broker, more where tables come in pages."""
        return await fan_out(dict.fromkeys(addresses, self._tables), str, failures)

    async def runtimes(self, addresses: Iterable[str], cluster: str, failures: Failures) -> dict[str, Runtime]:
        """Returns what each broker that answers tells of its run. `cluster` is RocketMQ's name. Three requests each."""

        async def runtime(address: str) -> Runtime:
            return await runtime_of(self._admin, address, cluster)

        return await fan_out(dict.fromkeys(addresses, runtime), str, failures)

    async def rates(
        self, wanted: Iterable[tuple[str, StatsKey]], failures: Failures
    ) -> dict[tuple[str, StatsKey], float]:
        """Returns, by (address, statistic), the rates of the last minute; those of which nothing was counted lack."""

        async def rate(asked: tuple[str, StatsKey]) -> float | None:
            return await rate_of(self._admin, *asked)

        found = await fan_out(dict.fromkeys(wanted, rate), lambda asked: asked[0], failures)
        return {asked: number for asked, number in found.items() if number is not None}

    async def member_statuses(
        self, wanted: Iterable[tuple[str, str, str]], failures: Failures, *, timeout_s: float = SAMPLE_TIMEOUT_S
    ) -> dict[tuple[str, str, str], MemberStatus]:
        """Returns, by (address, group, client id), what members say of themselves; those that don't answer lack."""

        async def status(asked: tuple[str, str, str]) -> MemberStatus | None:
            return await member_status(self._admin, *asked)

        calls = dict.fromkeys(wanted, status)
        found = await fan_out(calls, lambda asked: asked[0], failures, timeout_s=timeout_s)
        return {asked: told for asked, told in found.items() if told is not None}

    async def topic_stats(
        self, wanted: Iterable[tuple[str, str]], failures: Failures
    ) -> dict[tuple[str, str], dict[MessageQueue, TopicOffset]]:
        """Returns those of (address, topic). A topic that was deleted meanwhile is left out."""
        calls = dict.fromkeys(wanted, self._topic_stats)
        found = await fan_out(calls, lambda pair: pair[0], failures)
        return {pair: stats for pair, stats in found.items() if stats is not None}

    async def consumer_connections(
        self, wanted: Iterable[tuple[str, str]], failures: Failures
    ) -> dict[tuple[str, str], ConsumerConnection | None]:
        """Returns those of (address, group); None: no member of the group is connected to that broker."""

        async def connection(pair: tuple[str, str]) -> ConsumerConnection | None:
            return await self._admin.clients.consumers(*pair)

        return await fan_out(dict.fromkeys(wanted, connection), lambda pair: pair[0], failures)

    async def masters(self) -> list[Master]:
        """Returns the masters by name. Raises GatewayError when no name server answers."""
        known = await self.known_brokers()
        found = [Master(one.broker_name, one.master_addr, one.cluster) for one in known.brokers if one.master_addr]
        if known.silent:
            listed = {one.broker_name for one in known.brokers}
            found += [one for one in self._remembered if one.name not in listed]
        return sorted(found, key=lambda one: one.name)

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
