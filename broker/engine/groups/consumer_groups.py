"""All that the broker knows of consumer groups: settings, members, progress, queue locks (RocketMQ's `ConsumerManager`,
`SubscriptionGroupManager`, `ConsumerOffsetManager`, `RebalanceLockManager` side by side).

Composition only; every rule lives in the part's own file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from broker.engine.config import BrokerConfig
from broker.engine.event_loop import PeriodicTask
from broker.engine.groups.group_configs import Groups
from broker.engine.groups.member_calls import MemberCalls
from broker.engine.groups.members import MemberEvents, Members
from broker.engine.groups.offsets import Offsets
from broker.engine.groups.queue_locks import QueueLocks
from broker.engine.groups.request_modes import RequestModes
from remoting.complaints import ComplaintLog


class GroupEvents(MemberEvents, Protocol):
    """Is called with each change of a group: the watch request reports them."""

    def group_changed(self, group: str) -> None: ...

    def committed(self, group: str, topic: str, queue_id: int) -> None: ...


class ConsumerGroups:
    """`clock`: ms since the epoch."""

    def __init__(
        self, *, config: BrokerConfig, events: GroupEvents, complaints: ComplaintLog, clock: Callable[[], int]
    ) -> None:
        self._config = config
        self.configs = Groups(config.config_dir, config, events.group_changed, complaints)
        self.members = Members(clock, events, self.configs.notifies_members, complaints)
        self.calls = MemberCalls(self.members)
        self.locks = QueueLocks()
        self.offsets = Offsets(
            config.config_dir, events.committed, complaints, save_interval_s=config.offsets_save_interval_s
        )
        self.request_modes = RequestModes(config.config_dir, complaints)
        self._expiring = PeriodicTask("expire members", config.member_scan_interval_s, self._expire)

    def load(self, max_offset: Callable[[str, int], int]) -> None:
        """Reads the config files; no progress goes beyond its queue's `max_offset`. Raises ConfigFileUnreadable,
        ConfigFileUnwritable."""
        self.configs.load()
        self.offsets.load()
        self.offsets.clamp_to_queue_ends(max_offset)
        self.request_modes.load()

    def start(self) -> None:
        self.configs.file.start()
        self.offsets.start()
        self._expiring.start()

    async def stop(self) -> None:
        """Saves the committed offsets. Raises OSError."""
        await self._expiring.stop()
        await self.configs.file.stop()
        await self.offsets.stop()

    async def _expire(self) -> None:
        self.members.close_silent(self._config.member_expiry_s)
        self.locks.forget_expired()
