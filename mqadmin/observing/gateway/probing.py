"""Finding out what is behind addresses that somebody typed: first the name servers, then the brokers that they name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mqadmin.observing.gateway.failures import Failures
from mqadmin.observing.gateway.fan_out import fan_out
from remoting.client.admin import Admin
from remoting.wire.bodies.route import BrokerData

# More than a probe needs to tell what a cluster is; the rest is counted.
BROKERS_ASKED_MAX = 100


@dataclass(frozen=True, slots=True)
class NameServerProbe:
    """One name server: the names of the brokers that it knows, or why it did not answer."""

    address: str
    brokers: tuple[str, ...] = ()
    took_s: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class BrokerProbe:
    """One master. `version` as it names itself, "5.4.0"; `is_ours` None and an `error` where it did not answer."""

    name: str
    cluster: str
    address: str
    version: str = ""
    is_ours: bool | None = None
    took_s: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """What is behind the addresses; `broker_count` counts also those that were not asked."""

    name_servers: tuple[NameServerProbe, ...]
    brokers: tuple[BrokerProbe, ...]
    broker_count: int


class Probing:
    """Asks name servers and brokers once each, for a person who waits."""

    def __init__(self, admin: Admin, name_servers: Sequence[str]) -> None:
        self._admin = admin
        self._name_servers = name_servers

    async def probe(self) -> Probe:
        """Returns what was found; who did not answer is in it with the reason."""
        failures = Failures()
        known: dict[str, BrokerData] = {}
        name_servers = []
        answers = await fan_out(dict.fromkeys(self._name_servers, self._name_server), str, failures)
        for address in self._name_servers:
            if address not in answers:
                name_servers.append(NameServerProbe(address, error=failures.reasons.get(address, "")))
                continue
            took_s, brokers = answers[address]
            name_servers.append(NameServerProbe(address, tuple(sorted(brokers)), took_s))
            known |= {name: broker for name, broker in brokers.items() if broker.master_addr}
        asked = [known[name] for name in sorted(known)][:BROKERS_ASKED_MAX]
        found = await fan_out(dict.fromkeys((one.master_addr or "" for one in asked), self._broker), str, failures)
        brokers_found = tuple(_broker_probe(one, found, failures) for one in asked)
        return Probe(tuple(name_servers), brokers_found, len(known))

    async def _name_server(self, address: str) -> tuple[float, dict[str, BrokerData]]:
        began_s = time.monotonic()
        info = await self._admin.cluster.info(address)
        return time.monotonic() - began_s, info.broker_addr_table

    async def _broker(self, address: str) -> tuple[float, str, bool]:
        began_s = time.monotonic()
        runtime = await self._admin.brokers.runtime_info(address)
        took_s = time.monotonic() - began_s
        version = runtime.get("brokerVersionDesc", "").removeprefix("V").replace("_", ".")
        return took_s, version, await self._admin.our_broker.is_at(address)


def _broker_probe(broker: BrokerData, found: dict[str, tuple[float, str, bool]], failures: Failures) -> BrokerProbe:
    address = broker.master_addr or ""
    if address not in found:
        return BrokerProbe(broker.broker_name, broker.cluster, address, error=failures.reasons.get(address, ""))
    took_s, version, is_ours = found[address]
    return BrokerProbe(broker.broker_name, broker.cluster, address, version, is_ours, took_s)
