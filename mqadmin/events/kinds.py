"""What events there are, and which of them a reader wants. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any


class EventKind(StrEnum):
    """What happened; docs/LIVE.md has the data of each."""

    CLUSTER = "cluster"
    VERDICT = "verdict"
    OBJECTIVE = "objective"
    REBALANCE = "rebalance"
    CONFLICT = "conflict"
    DEAD_LETTERS = "dead_letters"
    FAILURE_RAISED = "failure_raised"
    REPLAY = "replay"
    ALERT = "alert"


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event before it has its number. `group` "": it is about the cluster itself."""

    kind: EventKind
    cluster: str
    group: str
    at: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events a reader wants, and may see. `seen` None: all clusters; empty `kinds` and `groups`: all.

    `groups` are names, in which `*` stands for any characters. With any, events about no group are left out.
    """

    seen: frozenset[str] | None = None
    clusters: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    groups: Sequence[str] = ()

    @property
    def cluster_names(self) -> frozenset[str] | None:
        """Returns the clusters whose events are wanted and may be seen; None for all."""
        if not self.clusters:
            return self.seen
        return self.clusters if self.seen is None else self.clusters & self.seen

    def wants(self, kind: str, cluster: str, group: str) -> bool:
        """Tells whether the reader gets the event."""
        names = self.cluster_names
        if names is not None and cluster not in names:
            return False
        if self.kinds and kind not in self.kinds:
            return False
        return self.wants_group(group)

    def wants_group(self, group: str) -> bool:
        """Tells whether the reader gets events about the group."""
        return not self.groups or any(_fits(group, pattern) for pattern in self.groups)


def _fits(group: str, pattern: str) -> bool:
    # Of fnmatch's signs only `*` is one here: names may have the others.
    return fnmatchcase(group, pattern.replace("[", "[[]").replace("?", "[?]"))
