"""The settings of a broker as it has them now, each with its default where that is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mqadmin.actions.secret_words import is_secret
from mqadmin.brokers.defaults import BY_PROCESSORS, OWN, Defaults, defaults_of
from mqadmin.clusters.models import Broker, Cluster, ClusterKind
from mqadmin.clusters.versions import version_name
from mqadmin.observing.gateway import ask

# Apache's brokers have about 460.
SETTINGS_SHOWN_MAX = 2000
# What the list shows of them: those that differ from their default, those whose default is not known.
CHANGED, NOT_KNOWN = "changed", "unknown"


@dataclass(frozen=True, slots=True)
class BrokerSetting:
    """`default` None: not known. `is_own`: each broker has its own; `is_by_processors`: it depends on the machine."""

    name: str
    value: str
    default: str | None
    is_own: bool
    is_by_processors: bool

    @property
    def is_secret(self) -> bool:
        """Tells whether its value is nothing to be shown; Apache's brokers tell passwords like any other setting."""
        return is_secret(self.name)

    @property
    def is_changed(self) -> bool:
        """Tells whether it is known to differ from its default."""
        return self.default is not None and self.value != self.default


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """`defaults` None: those of this broker's version are not known."""

    settings: tuple[BrokerSetting, ...]
    version: str
    defaults: Defaults | None

    @property
    def changed_count(self) -> int:
        return sum(one.is_changed for one in self.settings)


def matching(settings: Iterable[BrokerSetting], text: str, show: str) -> list[BrokerSetting]:
    """Returns those with `text` in their name, or in a value that may be shown; `show` is CHANGED, NOT_KNOWN or ""."""
    wanted = text.strip().casefold()
    return [one for one in settings if _has(one, wanted) and _is_shown(one, show)]


def _has(setting: BrokerSetting, wanted: str) -> bool:
    return wanted in setting.name.casefold() or (not setting.is_secret and wanted in setting.value.casefold())


def _is_shown(setting: BrokerSetting, show: str) -> bool:
    if show == CHANGED:
        return setting.is_changed
    return show != NOT_KNOWN or setting.default is None


def settings_of(cluster: Cluster, broker: Broker) -> BrokerSettings:
    """Asks the broker for its settings. Raises GatewayError."""
    told = ask(cluster.namesrv, lambda gateway: gateway.broker_settings.config(broker.address))
    defaults = defaults_of(cluster.kind, told.version)
    return BrokerSettings(
        tuple(
            BrokerSetting(
                name,
                told.values[name],
                defaults.values.get(name) if defaults is not None else None,
                name in OWN,
                cluster.kind != ClusterKind.OURS and name in BY_PROCESSORS,
            )
            for name in sorted(told.values)[:SETTINGS_SHOWN_MAX]
        ),
        version_name(told.version),
        defaults,
    )
