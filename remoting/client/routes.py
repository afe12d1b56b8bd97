"""Routes of the topics that a client uses, kept fresh (RocketMQ's `MQClientInstance`).

A topic is in use from its first call here until there was none for `route_unused_s`. Routes in use are requested again
every 30 s. A route is kept when a refresh fails, and also when the name servers suddenly have no route to the topic:
they keep routes in memory, and one that has just started has none for up to 30 s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from remoting.client.config import ClientConfig
from remoting.client.errors import BrokerRefused, ClientError, RouteNotFound
from remoting.client.name_servers import NameServers
from remoting.client.single_flight import SingleFlight
from remoting.client.topic_route import TopicRoute, template_route, topic_route
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import MASTER_ID, BrokerData, TopicRouteData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.errors import BodyError
from remoting.wire.headers.routes import GetRouteHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.names import AUTO_CREATE_TOPIC

logger = logging.getLogger(__name__)

# Called with the topic whose route changed.
ChangeCallback = Callable[[str], None]


class _Entry:
    __slots__ = ("fetched_s", "is_expired", "route", "used_s")

    def __init__(self, now_s: float) -> None:
        self.route: TopicRoute | None = None
        self.used_s = now_s
        self.fetched_s = now_s
        self.is_expired = False

    def needs_refresh(self, now_s: float, expired_age_s: float) -> bool:
        doubtful = self.is_expired or (self.route is not None and self.route.is_template)
        return doubtful and now_s - self.fetched_s >= expired_age_s


class Routes:
    """Callers: producers, consumers, heartbeats, admin. Affects: `changed` is called after any change of a route."""

    def __init__(
        self,
        name_servers: NameServers,
        changed: ChangeCallback | None = None,
        *,
        config: ClientConfig | None = None,
    ) -> None:
        self.config = config or ClientConfig()
        self.name_servers = name_servers
        self.changed: list[ChangeCallback] = [changed] if changed is not None else []
        self._entries: dict[str, _Entry] = {}
        self._brokers: dict[str, BrokerData] = {}
        self._requests: SingleFlight[str, TopicRoute] = SingleFlight()
        self._refresh_loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the refresh every 30 s."""
        if self._refresh_loop is None:
            self._refresh_loop = asyncio.create_task(self._refresh_periodically(), name="route refresh")

    async def close(self) -> None:
        """Ends the refresh and cancels requests under way."""
        if self._refresh_loop is not None:
            self._refresh_loop.cancel()
            await asyncio.gather(self._refresh_loop, return_exceptions=True)
            self._refresh_loop = None
        await self._requests.close()

    async def get(self, topic: str) -> TopicRouteData:
        """Returns the route of a topic. Raises RouteNotFound, NameServersUnreachable, BrokerRefused or BodyError."""
        return (await self._route(topic)).data

    async def publish_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the queues to send to; of a topic that does not exist yet those that the broker will create it with.

        Raises as `get`; empty when no broker of the topic accepts messages.
        """
        entry = self._entries.get(topic)
        now_s = asyncio.get_running_loop().time()
        if (
            entry is not None
            and entry.route is not None
            and not entry.needs_refresh(now_s, self.config.route_expired_age_s)
        ):
            entry.used_s = now_s
            return entry.route.publish_queues
        try:
            return (await self._route(topic)).publish_queues
        except RouteNotFound as not_found:
            return (await self._template(topic, not_found)).publish_queues

    async def subscribe_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the queues to read. Raises as `get`."""
        return (await self._route(topic)).subscribe_queues

    def use(self, topic: str) -> None:
        """Keeps `topic` in use although it may not exist yet: `changed` is called when it appears."""
        now_s = asyncio.get_running_loop().time()
        self._entries.setdefault(topic, _Entry(now_s)).used_s = now_s

    def known(self, topic: str) -> TopicRoute | None:
        """Returns the route that is known now, without a request."""
        entry = self._entries.get(topic)
        return entry.route if entry else None

    def expire(self, topic: str) -> None:
        """Marks a route that failed: its next use asks a name server, at most once a second."""
        entry = self._entries.get(topic)
        if entry is not None:
            entry.is_expired = True

    async def refresh(self, topic: str) -> TopicRouteData:
        """Asks a name server now. Raises as `get`."""
        return (await self._requests.run(topic, lambda: self._request(topic))).data

    # where brokers are, from all routes known

    def master_address(self, broker_name: str) -> str | None:
        """Returns the address of a broker's master; None where no route names one."""
        broker = self._brokers.get(broker_name)
        return broker.master_addr if broker else None

    def read_address(self, broker_name: str, broker_id: int = 0) -> str | None:
        """Returns the address to read from: of the wanted broker id, else of the next, else of any."""
        broker = self._brokers.get(broker_name)
        if broker is None:
            return None
        addresses = broker.broker_addrs
        wanted = addresses.get(str(broker_id)) or addresses.get(str(broker_id + 1))
        return wanted or next(iter(addresses.values()), None)

    def broker_addresses(self, *, with_slaves: bool) -> set[str]:
        """Returns the addresses of all brokers in the known routes."""
        return {
            address
            for broker in self._brokers.values()
            for broker_id, address in broker.broker_addrs.items()
            if with_slaves or broker_id == MASTER_ID
        }

    async def _route(self, topic: str) -> TopicRoute:
        now_s = asyncio.get_running_loop().time()
        entry = self._entries.get(topic)
        if entry is not None:
            entry.used_s = now_s
            if (
                entry.route is not None
                and not entry.route.is_template
                and not entry.needs_refresh(now_s, self.config.route_expired_age_s)
            ):
                return entry.route
        try:
            return await self._requests.run(topic, lambda: self._request(topic))
        except ClientError:
            if entry is not None and entry.route is not None and not entry.route.is_template:
                return entry.route
            raise

    async def _template(self, topic: str, not_found: RouteNotFound) -> TopicRoute:
        try:
            template = await self._route(AUTO_CREATE_TOPIC)
        except RouteNotFound:
            raise not_found from None
        entry = self._entries[topic]
        entry.route = template_route(topic, template.data)
        entry.fetched_s = asyncio.get_running_loop().time()
        return entry.route

    async def _request(self, topic: str) -> TopicRoute:
        header = GetRouteHeader(topic=topic, accept_standard_json_only=True)
        request = Command(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, ext_fields=write_header(header))
        answer = await self.name_servers.request(request)
        now_s = asyncio.get_running_loop().time()
        entry = self._entries.setdefault(topic, _Entry(now_s))
        entry.fetched_s = now_s
        entry.is_expired = False
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            raise RouteNotFound(topic, str(self.name_servers))
        if answer.code != ResponseCode.SUCCESS:
            servers = str(self.name_servers)
            raise BrokerRefused(servers, request.code, answer.code, answer.remark, f"topic {topic!r}")
        return self._store(topic, entry, topic_route(topic, read_body(TopicRouteData, answer.body)))

    def _store(self, topic: str, entry: _Entry, route: TopicRoute) -> TopicRoute:
        if entry.route is not None and entry.route.data == route.data and not entry.route.is_template:
            return entry.route
        entry.route = route
        self._collect_brokers()
        for changed in self.changed:
            changed(topic)
        return route

    def _collect_brokers(self) -> None:
        """Collects the brokers of all routes; of one that several routes name, what the newest says."""
        self._brokers = {
            broker.broker_name: broker
            for entry in sorted(self._entries.values(), key=lambda entry: entry.fetched_s)
            if entry.route is not None
            for broker in entry.route.data.broker_datas
        }

    async def _refresh_periodically(self) -> None:
        while True:
            await asyncio.sleep(self.config.route_refresh_interval_s)
            try:
                await self.refresh_all()
            except Exception:  # an error of a `changed` callback must not end the refresh of all routes
                logger.exception(
                    "a refresh of the routes failed; the next comes in %g s", self.config.route_refresh_interval_s
                )

    async def refresh_all(self) -> None:
        """Asks for every topic in use; forgets the unused. Failures are logged, old routes stay."""
        self._forget_unused()
        for topic in list(self._entries):
            try:
                await self.refresh(topic)
            except RouteNotFound:
                logger.debug("topic %s has no route yet", topic)
            except (ClientError, BodyError) as error:
                logger.warning("the route of topic %s cannot be refreshed: %s", topic, error)
                if not isinstance(error, BodyError):
                    return  # the others would fail for the same reason

    def _forget_unused(self) -> None:
        now_s = asyncio.get_running_loop().time()
        unused = [topic for topic, entry in self._entries.items() if now_s - entry.used_s > self.config.route_unused_s]
        for topic in unused:
            del self._entries[topic]
        if unused:
            self._collect_brokers()
