"""How many messages a conflict has skipped so far: what can be said honestly, and by which method.

Of two expressions for a topic the broker filters by one, and progress passes what that one filters out. How many these
were nobody counts, neither Apache's brokers nor ours: it would take reading each message. So what is told is a bound:
at most what the group's progress passed since the conflict began; those among it that matched were consumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from mqadmin.clusters.models import Group
from mqadmin.lag.passed import passed_since
from mqadmin.subscriptions.consistency import Finding, FindingKind


class SkippedMethod(StrEnum):
    """What is known of how many were skipped."""

    # At most so many: what progress passed.
    PROGRESS_PASSED = "progress_passed"
    # None by this: what is not read waits, as lag.
    WAITS = "waits"
    # None by this: what differs is how, not what members consume.
    NOTHING_SKIPPED = "nothing_skipped"
    NOT_KNOWN = "not_known"


@dataclass(frozen=True, slots=True)
class Skipped:
    """`at_most`: of PROGRESS_PASSED; `since`: from when on that was counted.

    `moved_back_count`: how often an offset was moved back meanwhile. Progress of those cycles is not in the bound.
    """

    method: SkippedMethod
    at_most: int | None = None
    since: datetime | None = None
    moved_back_count: int = 0


_METHODS: Mapping[FindingKind, SkippedMethod] = {
    FindingKind.EXPRESSION: SkippedMethod.PROGRESS_PASSED,
    FindingKind.TOPICS: SkippedMethod.WAITS,
    # Whose progress is whose is not told apart there.
    FindingKind.MODEL: SkippedMethod.NOT_KNOWN,
    FindingKind.ORDER: SkippedMethod.NOTHING_SKIPPED,
    FindingKind.START: SkippedMethod.NOT_KNOWN,
}


def skipped(group: Group, found: Finding) -> Skipped:
    """Returns what is known of how many messages this conflict has skipped."""
    method = _METHODS[found.kind]
    if method != SkippedMethod.PROGRESS_PASSED:
        return Skipped(method)
    if found.since is None or (passed := passed_since(group, found.topic, found.since)) is None:
        return Skipped(SkippedMethod.NOT_KNOWN)
    return Skipped(method, passed.count, max(passed.since, found.since), passed.moved_back_count)
