"""What the broker's settings are when nothing was said: for those who show what somebody has changed."""

from __future__ import annotations

from pathlib import Path

from broker.engine.config import BrokerConfig
from broker.engine.settings import Settings
from remoting.complaints import ComplaintLog

# Of each broker its own: the folder that follows stands for none.
_NO_STORE = Path("store")
OWN = frozenset({"storePathRootDir", "storePathCommitLog"})


def default_settings() -> dict[str, str]:
    """Returns the texts by RocketMQ's names, without those that every broker has for itself."""
    found = Settings(BrokerConfig(store=_NO_STORE), ComplaintLog()).all_as_text()
    return {name: text for name, text in found.items() if name not in OWN}
