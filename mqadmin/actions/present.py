"""The settings that a topic or group has now, broker by broker: what a page shows and a form starts with."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mqadmin.actions.brokers import ask_cluster, refuse_when_none_answers
from mqadmin.actions.declaration import Values
from mqadmin.clusters.models import Cluster
from mqadmin.observing.gateway import Failures, Gateway, Master

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class OnBrokers:
    """`settings`: broker → what it has, {} where it does not have it; `failures`: broker → why it told nothing."""

    settings: Mapping[str, Values]
    failures: Mapping[str, str]

    @property
    def having(self) -> Mapping[str, Values]:
        """The brokers that have it."""
        return {broker: values for broker, values in self.settings.items() if values}

    @property
    def differing(self) -> list[str]:
        """The names of settings that brokers have differently."""
        having = list(self.having.values())
        return [name for name in (having[0] if having else ()) if any(one[name] != having[0][name] for one in having)]

    def of(self, brokers: Sequence[str]) -> OnBrokers:
        """Returns the same of these brokers alone, of all where none is named."""
        settings = {name: values for name, values in self.settings.items() if not brokers or name in brokers}
        return OnBrokers(settings, self.failures)


def ask_brokers(
    cluster: Cluster,
    configs: Callable[[Gateway, list[str], Failures], Coroutine[Any, Any, Mapping[str, C | None]]],
    values_of: Callable[[C], Values],
) -> OnBrokers:
    """Asks the masters of a cluster; `configs` returns by address what each has. Raises ActionUnavailable."""
    failures = Failures()

    async def call(gateway: Gateway) -> tuple[list[Master], Mapping[str, C | None]]:
        masters = await gateway.masters()
        return masters, await configs(gateway, [one.address for one in masters], failures)

    masters, found = ask_cluster(cluster, call)
    refuse_when_none_answers(masters, failures.reasons)
    settings = {
        master.name: {} if (config := found[master.address]) is None else values_of(config)
        for master in masters
        if master.address in found
    }
    return OnBrokers(settings, _by_name(masters, failures))


def ask_for_all(
    cluster: Cluster,
    tables: Callable[[Gateway, list[str], Failures], Coroutine[Any, Any, Mapping[str, Mapping[str, C]]]],
    values_of: Callable[[C], Values],
) -> Callable[[str], OnBrokers]:
    """Asks the masters of a cluster for all that they have; returns what says it of one name.

    `tables` returns by address what each has by name. Raises ActionUnavailable.
    """
    failures = Failures()

    async def call(gateway: Gateway) -> tuple[list[Master], Mapping[str, Mapping[str, C]]]:
        masters = await gateway.masters()
        return masters, await tables(gateway, [one.address for one in masters], failures)

    masters, found = ask_cluster(cluster, call)
    refuse_when_none_answers(masters, failures.reasons)
    told = {master.name: found[master.address] for master in masters if master.address in found}
    reasons = _by_name(masters, failures)

    def of(name: str) -> OnBrokers:
        return OnBrokers(
            {broker: values_of(all_[name]) if name in all_ else {} for broker, all_ in told.items()}, reasons
        )

    return of


def _by_name(masters: Sequence[Master], failures: Failures) -> dict[str, str]:
    names = {master.address: master.name for master in masters}
    return {names[address]: reason for address, reason in failures.reasons.items()}
