"""Consumer groups' settings and `config/subscriptionGroup.json` (RocketMQ's `SubscriptionGroupManager`).

A group is created when a client first names it, where `autoCreateSubscriptionGroup` allows that. Its members are
`members.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from broker.engine.config import BrokerConfig
from broker.engine.config_table import ConfigTable, Saved
from remoting.complaints import ComplaintLog
from remoting.wire import names
from remoting.wire.bodies.groups import SubscriptionGroupConfig, SubscriptionGroupTable
from remoting.wire.errors import MessageError

FILE_NAME = "subscriptionGroup.json"
# Made at every start: tools pull as TOOLS_CONSUMER without a heartbeat.
_SYSTEM_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
)


class Groups:
    """`on_changed(group)` is called for each group that was created, changed or deleted; `file` keeps them."""

    def __init__(
        self, folder: Path, config: BrokerConfig, on_changed: Callable[[str], None], complaints: ComplaintLog
    ) -> None:
        self._config = config
        self.file = ConfigTable(
            folder / FILE_NAME,
            SubscriptionGroupTable(),
            "subscription_group_table",
            SubscriptionGroupConfig,
            on_changed=on_changed,
            fold_interval_s=config.offsets_save_interval_s,
            complaints=complaints,
        )

    def load(self) -> None:
        """Reads the file and adds RocketMQ's system groups. Raises ConfigFileUnreadable, ConfigFileUnwritable."""
        self.file.load({name: SubscriptionGroupConfig(group_name=name) for name in _SYSTEM_GROUPS})

    @property
    def table(self) -> SubscriptionGroupTable:
        return self.file.table

    def find(self, name: str) -> SubscriptionGroupConfig | None:
        """Returns the group, creating it where that is allowed; None for one that may not be, or has an illegal name.

        Raises ConfigFileUnwritable.
        """
        group = self.file.entries.get(name)
        if group is not None:
            return group
        self.make([name])
        return self.file.entries.get(name)

    def make(self, group_names: Iterable[str]) -> None:
        """Creates the missing groups, where that is allowed, with one write for all. Raises ConfigFileUnwritable."""
        if not self._config.creates_groups:
            return
        missing = {name: SubscriptionGroupConfig(group_name=name) for name in group_names if not self.exists(name)}
        missing = {name: group for name, group in missing.items() if _is_legal(name)}
        if missing:
            self.file.save(missing)

    def exists(self, name: str) -> bool:
        """Tells whether the group exists; it is not created."""
        return name in self.file.entries

    def notifies_members(self, name: str) -> bool:
        """Tells whether members are notified of others that join or leave (40); those of an unknown group are."""
        config = self.file.entries.get(name)
        return config is None or config.notify_consumer_ids_changed_enable

    def put(self, groups: Iterable[SubscriptionGroupConfig], saved: Saved) -> None:
        """Creates or changes all of them or none, as an administrator says; calls `saved` when they are on the disk.

        Raises MessageError.
        """
        wanted = {group.group_name: group for group in groups}
        for name in wanted:
            names.check_group(name)
        if wanted:
            self.file.submit(wanted, (), saved)
        else:
            saved(None)

    def delete(self, name: str) -> bool:
        """Returns False when there was none. Raises ConfigFileUnwritable."""
        if not self.exists(name):
            return False
        self.file.save({}, [name])
        return True


def _is_legal(name: str) -> bool:
    try:
        names.check_group(name)
    except MessageError:
        return False
    return True
