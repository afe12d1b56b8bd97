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
    settings: dict[str, Values] = {}
    for master in masters:
        if master.address in found:
            config = found[master.address]
            settings[master.name] = {} if config is None else values_of(config)
    names = {master.address: master.name for master in masters}
    return OnBrokers(settings, {names[address]: reason for address, reason in failures.reasons.items()})
