"""What settings of a broker are when nothing was said, as far as that is known.

Of our brokers it is what this release has. Apache's brokers cannot be asked for it: `apache_defaults/` has what a fresh
one of a version answered, measured; of other versions nothing is known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from broker.default_settings import default_settings
from mqadmin.clusters.models import ClusterKind
from mqadmin.clusters.versions import version_name
from remoting.wire.java_properties import read_properties

APACHE_DEFAULTS = Path(__file__).parent / "apache_defaults"
# What each broker has for itself: a default would say nothing.
OWN = frozenset(
    {
        "bindAddress",
        "brokerClusterName",
        "brokerIP1",
        "brokerIP2",
        "brokerId",
        "brokerName",
        "controllerAddr",
        "haListenPort",
        "listenPort",
        "namesrvAddr",
        "rocketmqHome",
        "storePathCommitLog",
        "storePathRootDir",
    }
)
# Apache's brokers count the machine's processors for these.
BY_PROCESSORS = frozenset(
    {
        "clientCallbackExecutorThreads",
        "endTransactionThreadPoolNums",
        "heartbeatThreadPoolNums",
        "litePullMessageThreadPoolNums",
        "processReplyMessageThreadPoolNums",
        "pullMessageThreadPoolNums",
        "putMessageFutureThreadPoolNums",
        "queryMessageThreadPoolNums",
        "sendMessageThreadPoolNums",
    }
)


@dataclass(frozen=True, slots=True)
class Defaults:
    """Default values by the settings' names; `version` is that of the brokers they were measured on, "" for ours."""

    values: Mapping[str, str]
    version: str = ""


def defaults_of(kind: str, version: int) -> Defaults | None:
    """Returns the defaults of a kind of brokers (one of ClusterKind) of a version by its number; None: not known."""
    if kind == ClusterKind.OURS:
        return Defaults({name: text for name, text in default_settings().items() if name not in OWN})
    return _apache_defaults().get(version_name(version))


@cache
def _apache_defaults() -> dict[str, Defaults]:
    found = APACHE_DEFAULTS.glob("*.properties")
    return {path.stem: Defaults(read_properties(path.read_text()), path.stem) for path in found}
