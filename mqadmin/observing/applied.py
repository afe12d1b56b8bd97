"""What one observation has changed in the rows of its cluster, and the signals that say so.

The synchroniser notes here what it writes; each signal is sent in a transaction of the synchroniser's, after the rows
that it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mqadmin.clusters.models import Cluster
from mqadmin.observing.observation import Observation, ObservedEvent
from mqadmin.observing.signals import (
    GroupsChanged,
    GroupsCommitted,
    MembershipChange,
    RebalanceObserved,
    TopicsChanged,
    groups_changed,
    groups_committed,
    publish,
    rebalance_observed,
    topics_changed,
)
from remoting.wire.bodies.watch import ASSIGNMENT_CHANGED


@dataclass(slots=True)
class Applied:
    """Sets hold primary keys, mappings go by a group's name."""

    cluster: Cluster
    observation: Observation
    is_watched: bool
    # Rows, those of the signals' receivers included.
    written_count: int = 0
    topics: set[int] = field(default_factory=set)
    has_changed_topics: bool = False
    # Names of topics of which a queue reaches further than before.
    grown: set[str] = field(default_factory=set)
    changed_groups: set[int] = field(default_factory=set)
    committed_groups: set[int] = field(default_factory=set)
    memberships: dict[str, MembershipChange] = field(default_factory=dict)
    # When the members of groups were observed before: only these can be compared with now.
    had_members_seen: dict[str, datetime] = field(default_factory=dict)
    # Client ids that other brokers know to be online.
    elsewhere: dict[str, set[str]] = field(default_factory=dict)

    def publish_committed(self, group_ids: AbstractSet[int]) -> None:
        """Publishes in the transaction that wrote the rows: nothing else would ever have these groups measured.

        Groups that changed otherwise are published as such, once all of them are written.
        """
        self.committed_groups |= group_ids
        if of_groups := sorted(group_ids - self.changed_groups):
            event = GroupsCommitted(**self._of_all(), group_ids=of_groups)
            self.written_count += publish(groups_committed, event)

    def publish_changed(self, group_ids: Sequence[int]) -> None:
        self.written_count += publish(groups_changed, GroupsChanged(**self._of_all(), group_ids=group_ids))

    def publish_topics(self) -> None:
        """Leaves `grown` empty for the snapshot of a watch: it names all groups itself."""
        if not self.topics and not self.has_changed_topics:
            return
        sampled = {queue.queue.topic for queue in self.observation.queues}
        # What is watched may be told twice, because the first time was interrupted.
        grown = sampled if self.is_watched else self.grown
        event = TopicsChanged(
            **self._of_all(),
            topic_ids=sorted(self.topics),
            grown=() if self.is_watched and self.observation.is_complete else sorted(grown),
            seen_again=sorted(sampled - grown),
            named_group_ids=self.changed_groups | self.committed_groups,
        )
        self.written_count += publish(topics_changed, event)

    def publish_rebalance(self) -> None:
        """Treats the snapshot of a watch as a sample: what happened before it was not reported."""
        is_sampled = not self.is_watched or self.observation.is_complete
        changes = self.memberships
        if is_sampled:
            changes = {name: change for name, change in changes.items() if name in self.had_members_seen}
        if changes:
            events = () if is_sampled else [event for event in self.observation.events if self._is_news(event, changes)]
            event = RebalanceObserved(**self._of_all(), changes=changes, events=events, is_sampled=is_sampled)
            self.written_count += publish(rebalance_observed, event)

    def _is_news(self, event: ObservedEvent, changes: Mapping[str, MembershipChange]) -> bool:
        """Tells whether the event is the first word of it: a client connects to every broker of the cluster."""
        if event.kind == ASSIGNMENT_CHANGED or event.client_id not in self.elsewhere.get(event.group, ()):
            return True
        change = changes.get(event.group)
        return change is not None and event.client_id in change.subscriptions

    def _of_all(self) -> dict[str, Any]:
        return {"cluster": self.cluster, "at": self.observation.at, "is_watched": self.is_watched}
