"""Brokers themselves for those who change them: their settings, and whether name servers let producers find them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mqadmin.observing.gateway.failures import ChangeFailure, Failures, as_gateway_error
from mqadmin.observing.gateway.fan_out import change_all, fan_out
from remoting.client.admin import Admin
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.topics import PERM_WRITE
from remoting.wire.codes import ResponseCode


@dataclass(frozen=True, slots=True)
class ToldSettings:
    """What a broker tells: `values` by RocketMQ's names, and the number of its version."""

    values: dict[str, str]
    version: int


class BrokerRequests:
    """Questions about brokers, and changes of them; `name_servers` are addresses."""

    def __init__(self, admin: Admin, name_servers: Sequence[str]) -> None:
        self._admin = admin
        self._name_servers = name_servers

    async def config(self, address: str) -> ToldSettings:
        """Returns the broker's settings. Raises GatewayError."""
        with as_gateway_error():
            config = await self._admin.brokers.config(address)
        return ToldSettings(config.settings, config.broker_version)

    async def change_config(self, address: str, settings: Mapping[str, str]) -> ChangeFailure | None:
        """Changes settings of a broker, all or none; returns why that failed."""

        async def change(address: str) -> None:
            await self._admin.brokers.update_config(address, settings)

        return (await change_all({address: change})).get(address)

    async def writing(self, broker_name: str, topics: Sequence[str], failures: Failures) -> dict[str, bool | None]:
        """Returns by name server whether its routes let producers write to the broker; None where it has no route.

        The first of `topics` that is routed to the broker tells.
        """

        async def of(namesrv: str) -> bool | None:
            for topic in topics:
                perm = await self._routed_perm(namesrv, topic, broker_name)
                if perm is not None:
                    return bool(perm & PERM_WRITE)
            return None

        return await fan_out(dict.fromkeys(self._name_servers, of), str, failures)

    async def set_writing(
        self, name_servers: Iterable[str], broker_name: str, *, is_allowed: bool
    ) -> dict[str, ChangeFailure]:
        """Puts the permission to write into all routes to the broker, or takes it out; returns where that failed."""

        async def change(namesrv: str) -> None:
            if is_allowed:
                await self._admin.cluster.add_write_permission(namesrv, broker_name)
            else:
                await self._admin.cluster.wipe_write_permission(namesrv, broker_name)

        return await change_all(dict.fromkeys(name_servers, change))

    async def _routed_perm(self, namesrv: str, topic: str, broker_name: str) -> int | None:
        try:
            route = await self._admin.cluster.route(namesrv, topic)
        except BrokerRefused as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            raise
        return next((queues.perm for queues in route.queue_datas if queues.broker_name == broker_name), None)
