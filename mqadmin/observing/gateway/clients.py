"""Producers that brokers have a connection of; members of groups are in `groups.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mqadmin.observing.gateway.failures import Failures
from mqadmin.observing.gateway.fan_out import SAMPLE_TIMEOUT_S, fan_out
from remoting.client.admin import Admin
from remoting.client.errors import NotSupported


@dataclass(frozen=True, slots=True)
class ConnectedProducer:
    """A client of a producer group as one broker has it. `heartbeat_ms`: its last heartbeat, 0 where it is not told."""

    group: str
    client_id: str
    address: str
    language: str
    version: int
    heartbeat_ms: int


@dataclass(frozen=True, slots=True)
class ProducersTold:
    """By address. `named_only`: brokers that have no list, and so told only of the groups that they were asked for."""

    by_broker: Mapping[str, Sequence[ConnectedProducer]]
    named_only: frozenset[str] = frozenset()


class ClientRequests:
    """Questions about clients that are connected to brokers."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def producers(
        self, addresses: Iterable[str], group: str, failures: Failures, *, timeout_s: float = SAMPLE_TIMEOUT_S
    ) -> dict[str, list[ConnectedProducer]]:
        """Returns by address the producers of a group (204), or of all groups (328) where `group` is ""."""
        calls = dict.fromkeys(addresses, self._of_all if not group else lambda address: self._of_group(address, group))
        return await fan_out(calls, str, failures, timeout_s=timeout_s)

    async def all_producers(
        self,
        addresses: Iterable[str],
        groups: Sequence[str],
        failures: Failures,
        *,
        timeout_s: float = SAMPLE_TIMEOUT_S,
    ) -> ProducersTold:
        """Returns all producers (328); where a broker has no list of them, those of `groups` (204 each)."""
        named_only: set[str] = set()

        async def ask(address: str) -> list[ConnectedProducer]:
            try:
                return await self._of_all(address)
            except NotSupported:
                named_only.add(address)
                return [one for group in groups for one in await self._of_group(address, group)]

        told = await fan_out(dict.fromkeys(addresses, ask), str, failures, timeout_s=timeout_s)
        return ProducersTold(told, frozenset(named_only & told.keys()))

    async def _of_group(self, address: str, group: str) -> list[ConnectedProducer]:
        found = await self._admin.clients.producers(address, group)
        return [
            ConnectedProducer(group, one.client_id, one.client_addr, one.language, one.version, 0)
            for one in (found.connection_set if found is not None else ())
        ]

    async def _of_all(self, address: str) -> list[ConnectedProducer]:
        found = await self._admin.clients.all_producers(address)
        return [
            ConnectedProducer(
                group,
                one.client_id,
                # As Java writes an address: "/ip:port".
                one.remote_ip.removeprefix("/"),
                one.language,
                one.version,
                one.last_update_timestamp,
            )
            for group, told in found.data.items()
            for one in told
        ]
