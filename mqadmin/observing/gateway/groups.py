"""Groups for those who change them: what brokers have of one, and the requests that change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mqadmin.observing.gateway.failures import ChangeFailure, Failures
from mqadmin.observing.gateway.fan_out import change_all, fan_out
from remoting.client.admin import Admin
from remoting.client.admin.groups import GroupChange
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.running_info import PROP_CONSUMEORDERLY
from remoting.wire.codes import ResponseCode
from remoting.wire.names import dlq_topic, retry_topic


@dataclass(frozen=True, slots=True)
class GroupOnBroker:
    """A group as one broker has it now; `config` None: it has no settings of it, and may still have offsets.

    `members` are the client ids. `lag` is the sum over the queues that it committed an offset of, None where the broker
    does not say. `retry_count` and `dead_count`: messages in its retry topic and among its dead letters, None where the
    broker has no such topic.
    """

    config: SubscriptionGroupConfig | None
    members: tuple[str, ...]
    lag: int | None
    retry_count: int | None
    dead_count: int | None

    @property
    def is_there(self) -> bool:
        """Tells whether the broker has anything of it."""
        return self.config is not None or self.retry_count is not None or self.dead_count is not None


class GroupRequests:
    """Questions about groups, and changes of them."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def configs(
        self, addresses: Iterable[str], group: str, failures: Failures
    ) -> dict[str, SubscriptionGroupConfig | None]:
        """Returns the group's settings by address; None where a broker doesn't have it."""

        async def config(address: str) -> SubscriptionGroupConfig | None:
            return await self._admin.groups.config(address, group)

        return await fan_out(dict.fromkeys(addresses, config), str, failures)

    async def tables(
        self, addresses: Iterable[str], failures: Failures
    ) -> dict[str, dict[str, SubscriptionGroupConfig]]:
        """Returns all groups of each broker by its address, each by its name."""

        async def table(address: str) -> dict[str, SubscriptionGroupConfig]:
            return (await self._admin.groups.table(address)).subscription_group_table

        return await fan_out(dict.fromkeys(addresses, table), str, failures)

    async def on_brokers(self, addresses: Iterable[str], group: str, failures: Failures) -> dict[str, GroupOnBroker]:
        """Returns what each broker has of the group: settings, members, lag, messages that wait or are dead."""

        async def contents(address: str) -> GroupOnBroker:
            return GroupOnBroker(
                config=await self._admin.groups.config(address, group),
                members=await self._members(address, group),
                lag=await self._lag(address, group),
                retry_count=await self._stored(address, retry_topic(group)),
                dead_count=await self._stored(address, dlq_topic(group)),
            )

        return await fan_out(dict.fromkeys(addresses, contents), str, failures)

    async def members(self, addresses: Iterable[str], group: str, failures: Failures) -> set[str]:
        """Returns the client ids of the group's members that any broker knows."""

        async def of(address: str) -> tuple[str, ...]:
            return await self._members(address, group)

        return {one for found in (await fan_out(dict.fromkeys(addresses, of), str, failures)).values() for one in found}

    async def is_ordered(self, members: Mapping[str, str], group: str) -> bool | None:
        """Returns whether one of the members, by the address of its broker, says that it consumes in order.

        None where none says so, and not all have answered.
        """

        async def told(address: str) -> bool:
            info = await self._admin.clients.running_info(address, group, members[address])
            return info.properties.get(PROP_CONSUMEORDERLY, "").lower() == "true"

        answers = await fan_out(dict.fromkeys(members, told), str, Failures())
        if any(answers.values()):
            return True
        return False if len(answers) == len(members) else None

    async def create(self, wanted: Mapping[str, SubscriptionGroupConfig]) -> dict[str, ChangeFailure]:
        """Creates the group at each address; returns where that failed."""

        async def create_at(address: str) -> None:
            await self._admin.groups.create(address, wanted[address])

        return await change_all(dict.fromkeys(wanted, create_at))

    async def change(
        self, addresses: Iterable[str], group: str, settings: Mapping[str, Any]
    ) -> dict[str, ChangeFailure]:
        """Changes some of the group's settings, named as `SubscriptionGroupConfig` has them; returns where that failed.

        All others stay, also those that only other tools know.
        """
        change = GroupChange(**settings)

        async def change_at(address: str) -> None:
            await self._admin.groups.change(address, group, change)

        return await change_all(dict.fromkeys(addresses, change_at))

    async def delete(self, addresses: Iterable[str], group: str) -> dict[str, ChangeFailure]:
        """Deletes the group's settings and its committed offsets on the brokers; returns where that failed."""

        async def delete_at(address: str) -> None:
            await self._admin.groups.delete(address, group, clean_offsets=True)

        return await change_all(dict.fromkeys(addresses, delete_at))

    async def _members(self, address: str, group: str) -> tuple[str, ...]:
        found = await self._admin.clients.consumers(address, group)
        return tuple(sorted(client.client_id for client in found.connection_set)) if found is not None else ()

    async def _lag(self, address: str, group: str) -> int | None:
        try:
            stats = await self._admin.offsets.consume_stats(address, group)
        except BrokerRefused:
            return None
        return sum(max(0, queue.broker_offset - queue.consumer_offset) for queue in stats.queues.values())

    async def _stored(self, address: str, topic: str) -> int | None:
        try:
            ends = await self._admin.topics.stats(address, topic)
        except BrokerRefused as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            raise
        return sum(queue.max_offset - queue.min_offset for queue in ends.values())
