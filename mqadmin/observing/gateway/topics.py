"""Topics for those who change them: what brokers and name servers have of one, and the requests that change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mqadmin.observing.gateway.failures import ChangeFailure, Failures
from mqadmin.observing.gateway.fan_out import change_all, fan_out
from remoting.client.admin import Admin
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import ResponseCode

# Of one topic, whose lag a preview asks for.
READERS_ASKED_MAX = 20


@dataclass(frozen=True, slots=True)
class TopicOnBroker:
    """A topic as one broker has it now. `lag` by group; None where the broker does not say."""

    config: TopicConfig
    message_count: int
    lag: dict[str, int | None]


class TopicRequests:
    """Questions about topics, and changes of them; `name_servers` are addresses."""

    def __init__(self, admin: Admin, name_servers: Iterable[str]) -> None:
        self._admin = admin
        self._name_servers = tuple(name_servers)

    async def configs(self, addresses: Iterable[str], topic: str, failures: Failures) -> dict[str, TopicConfig | None]:
        """Returns the topic's settings by address; None where a broker doesn't have it."""

        async def config(address: str) -> TopicConfig | None:
            return await self._admin.topics.config(address, topic)

        return await fan_out(dict.fromkeys(addresses, config), str, failures)

    async def tables(self, addresses: Iterable[str], failures: Failures) -> dict[str, dict[str, TopicConfig]]:
        """Returns all topics of each broker by its address, each by its name."""

        async def table(address: str) -> dict[str, TopicConfig]:
            return (await self._admin.topics.table(address)).topic_config_table

        return await fan_out(dict.fromkeys(addresses, table), str, failures)

    async def on_brokers(
        self, addresses: Iterable[str], topic: str, failures: Failures
    ) -> dict[str, TopicOnBroker | None]:
        """Returns what each broker has of the topic, its readers included; None where it doesn't have it."""

        async def contents(address: str) -> TopicOnBroker | None:
            return await self._on_broker(address, topic)

        return await fan_out(dict.fromkeys(addresses, contents), str, failures)

    async def routes(self, topic: str, failures: Failures) -> dict[str, list[str]]:
        """Returns to which brokers each name server routes the topic; [] where it knows no route."""

        async def route(namesrv: str) -> list[str]:
            try:
                found = await self._admin.cluster.route(namesrv, topic)
            except BrokerRefused as error:
                if error.code == ResponseCode.TOPIC_NOT_EXIST:
                    return []
                raise
            return sorted(queues.broker_name for queues in found.queue_datas)

        return await fan_out(dict.fromkeys(self._name_servers, route), str, failures)

    async def create(self, wanted: Mapping[str, TopicConfig]) -> dict[str, ChangeFailure]:
        """Creates or changes the topic at each address; returns where that failed."""

        async def create_at(address: str) -> None:
            await self._admin.topics.create(address, wanted[address])

        return await change_all(dict.fromkeys(wanted, create_at))

    async def delete(self, addresses: Iterable[str], topic: str) -> dict[str, ChangeFailure]:
        """Deletes the topic on the brokers; returns where that failed."""

        async def delete(address: str) -> None:
            await self._admin.topics.delete(address, topic)

        return await change_all(dict.fromkeys(addresses, delete))

    async def delete_route(self, servers: Iterable[str], topic: str, cluster: str) -> dict[str, ChangeFailure]:
        """Deletes the topic's route to the brokers of a cluster on the name servers; returns where that failed."""

        async def delete(namesrv: str) -> None:
            await self._admin.cluster.delete_route(namesrv, topic, cluster)

        return await change_all(dict.fromkeys(servers, delete))

    async def _on_broker(self, address: str, topic: str) -> TopicOnBroker | None:
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
