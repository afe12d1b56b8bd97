"""Whether what a rule watches for holds. Pure: a condition and facts in, a reading out.

The table is the specification: what a rule can be about, of what kind of thing, and when it holds. What is not known
is neither: the reading says None. While an alert fires a threshold is crossed back only below CLEAR_RATIO of it, so
that a figure that swings around the threshold does not fire again and again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import pgettext_lazy

from mqadmin.clusters.cluster_verdict import ClusterJudgement, ClusterVerdict
from mqadmin.clusters.figures import Drain, DrainKind
from mqadmin.clusters.models import Verdict

CLEAR_RATIO = 0.9
# In percent nine tenths are far: of 90 % that were 81 %.
DISK_CLEAR_POINTS = 2
PATTERNS_REMEMBERED = 1024
NOT_KNOWN = Drain(DrainKind.UNKNOWN)
_NOTHING_ELSE_IS_KNOWN = frozenset({ClusterVerdict.UNREACHABLE, ClusterVerdict.UNKNOWN})


class Subject(StrEnum):
    """The kind of thing that an alert is about."""

    GROUP = "group"
    BROKER = "broker"
    CLUSTER = "cluster"


class About(TextChoices):
    """What a rule watches."""

    VERDICT = "verdict", pgettext_lazy("alert rule", "verdict of a group")
    LAG = "lag", pgettext_lazy("alert rule", "lag of a group, in messages")
    BEHIND = "behind", pgettext_lazy("alert rule", "lag of a group, in seconds")
    OBJECTIVE = "objective", pgettext_lazy("alert rule", "objective of a group")
    DRAIN = "drain", pgettext_lazy("alert rule", "time until a group’s lag is gone, in minutes")
    DEAD_LETTERS = "dead_letters", pgettext_lazy("alert rule", "new dead letters of a group")
    RAISED = "raised", pgettext_lazy("alert rule", "failures of a group that rules for dead letters raised")
    CONFLICT = "conflict", pgettext_lazy("alert rule", "subscriptions of a group’s members")
    SCHEDULER = "scheduler", pgettext_lazy("alert rule", "lateness of a broker’s scheduler, in seconds")
    BROKER = "broker", pgettext_lazy("alert rule", "broker that does not answer")
    DISK = "disk", pgettext_lazy("alert rule", "disk of a broker, in percent used")
    CLUSTER = "cluster", pgettext_lazy("alert rule", "cluster that cannot be reached")
    CLUSTER_VERDICT = "cluster_verdict", pgettext_lazy("alert rule", "verdict of a cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a rule watches for, and of which things: `clusters` and `names` are patterns, `*` stands for any part.

    `verdicts` are those of VERDICT and CLUSTER_VERDICT, `threshold` is in the unit of `about`, `window_minutes` is of
    DEAD_LETTERS alone.
    """

    about: About
    clusters: str = "*"
    names: str = "*"
    verdicts: frozenset[str] = frozenset()
    threshold: float = 0
    window_minutes: int = 0

    @property
    def subject(self) -> Subject:
        return WATCHED[self.about].subject

    def is_about(self, cluster: str, name: str) -> bool:
        return matches(self.clusters, cluster) and (self.subject == Subject.CLUSTER or matches(self.names, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """`is_known` False: its cluster does not answer, so nothing of it is. `dead_counts`: by window in minutes.

    `raised_count`: failures that rules for dead letters show, of which `raised_dead_count` messages died.
    """

    cluster: str
    name: str
    is_known: bool = True
    verdict: str = ""
    verdict_rule: str = ""
    verdict_numbers: Mapping[str, Any] = field(default_factory=dict)
    lag: int | None = None
    behind_s: float = 0
    allowed_lag_s: int | None = None
    allowed_lag: int | None = None
    drain: Drain = NOT_KNOWN
    dead_counts: Mapping[int, int] = field(default_factory=dict)
    raised_count: int = 0
    raised_dead_count: int = 0
    conflict: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """`late_s` None: not known, or no scheduler of ours. `is_driven` None: the same; False: no worker runs it."""

    cluster: str
    name: str
    is_known: bool = True
    is_answering: bool | None = None
    late_s: float | None = None
    is_driven: bool | None = None
    disk_percent: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """`is_reachable` None: it has not been asked yet. `judged` None: no rule asks for its verdict."""

    cluster: str
    name: str = ""
    is_known: bool = True
    is_reachable: bool | None = None
    error: str = ""
    judged: ClusterJudgement | None = None


Facts = GroupFacts | BrokerFacts | ClusterFacts


@dataclass(frozen=True, slots=True)
class Reading:
    """`holds` None: not known. `said` is plain JSON, of which `sentences.py` makes words."""

    holds: bool | None
    said: Mapping[str, Any] = field(default_factory=dict)


UNKNOWN = Reading(None)


@dataclass(frozen=True, slots=True)
class Watched:
    subject: Subject
    read: Callable[[Condition, Any, bool], Reading]
    has_threshold: bool = False


def read(condition: Condition, facts: Facts, *, is_firing: bool) -> Reading:
    """Returns whether the condition holds; `is_firing`: an alert of it fires already."""
    return WATCHED[condition.about].read(condition, facts, is_firing) if facts.is_known else UNKNOWN


def matches(pattern: str, name: str) -> bool:
    """Tells whether a name fits a pattern, in the same case everywhere."""
    return pattern == "*" or _compiled(pattern).match(name) is not None


@lru_cache(PATTERNS_REMEMBERED)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def _over(condition: Condition, value: float | None, is_firing: bool, **said: Any) -> Reading:
    if value is None:
        return UNKNOWN
    limit = condition.threshold * (CLEAR_RATIO if is_firing else 1)
    return Reading(value >= limit, {"value": value, "threshold": condition.threshold, **said})


def _verdict(condition: Condition, group: GroupFacts, _is_firing: bool) -> Reading:
    if group.verdict == Verdict.UNKNOWN and Verdict.UNKNOWN not in condition.verdicts:
        return UNKNOWN
    said = {"verdict": group.verdict, "rule": group.verdict_rule, "numbers": dict(group.verdict_numbers)}
    return Reading(group.verdict in condition.verdicts, said)


def _lag(condition: Condition, group: GroupFacts, is_firing: bool) -> Reading:
    return _over(condition, group.lag, is_firing)


def _behind(condition: Condition, group: GroupFacts, is_firing: bool) -> Reading:
    return UNKNOWN if group.lag is None else _over(condition, group.behind_s, is_firing)


def _objective(_condition: Condition, group: GroupFacts, is_firing: bool) -> Reading:
    if group.lag is None or group.allowed_lag_s is None:
        return UNKNOWN
    ratio = CLEAR_RATIO if is_firing else 1
    is_over = group.behind_s > group.allowed_lag_s * ratio
    is_over = is_over or (group.allowed_lag is not None and group.lag > group.allowed_lag * ratio)
    said = {"value": group.behind_s, "lag": group.lag, "threshold": group.allowed_lag_s, "most": group.allowed_lag}
    return Reading(is_over, said)


def _drain(condition: Condition, group: GroupFacts, is_firing: bool) -> Reading:
    """A group that keeps up has a lag, too, which at equal rates is "never" gone: only one that is late is judged."""
    is_late = _objective(condition, group, is_firing).holds
    if not is_late:
        return Reading(is_late)
    match group.drain.kind:
        case DrainKind.UNKNOWN:
            return UNKNOWN
        case DrainKind.NEVER:
            return Reading(True, {"value": None, "threshold": condition.threshold})
        case _:
            return _over(condition, (group.drain.seconds or 0) / 60, is_firing)


def _dead_letters(condition: Condition, group: GroupFacts, _is_firing: bool) -> Reading:
    count = group.dead_counts.get(condition.window_minutes, 0)
    said = {"value": count, "threshold": condition.threshold, "minutes": condition.window_minutes}
    return Reading(count >= condition.threshold, said)


def _raised(_condition: Condition, group: GroupFacts, _is_firing: bool) -> Reading:
    return Reading(group.raised_count > 0, {"value": group.raised_count, "dead": group.raised_dead_count})


def _conflict(_condition: Condition, group: GroupFacts, _is_firing: bool) -> Reading:
    return Reading(bool(group.conflict), {"conflict": group.conflict})


def _scheduler(condition: Condition, broker: BrokerFacts, is_firing: bool) -> Reading:
    if broker.is_driven is False:
        return Reading(True, {"value": None, "threshold": condition.threshold})
    return _over(condition, broker.late_s, is_firing)


def _broker(_condition: Condition, broker: BrokerFacts, _is_firing: bool) -> Reading:
    return UNKNOWN if broker.is_answering is None else Reading(not broker.is_answering, {"error": broker.error})


def _disk(condition: Condition, broker: BrokerFacts, is_firing: bool) -> Reading:
    limit = condition.threshold - (DISK_CLEAR_POINTS if is_firing else 0)
    if broker.disk_percent is None:
        return UNKNOWN
    return Reading(broker.disk_percent >= limit, {"value": broker.disk_percent, "threshold": condition.threshold})


def _cluster(_condition: Condition, cluster: ClusterFacts, _is_firing: bool) -> Reading:
    return UNKNOWN if cluster.is_reachable is None else Reading(not cluster.is_reachable, {"error": cluster.error})


def _cluster_verdict(condition: Condition, cluster: ClusterFacts, _is_firing: bool) -> Reading:
    """Takes all that somebody should look at: the worst alone would hide a broker that is away behind a group."""
    judged = cluster.judged
    if judged is None:
        return UNKNOWN
    if judged.verdict in _NOTHING_ELSE_IS_KNOWN and judged.verdict not in condition.verdicts:
        return UNKNOWN
    said = {
        "verdict": judged.verdict.value,
        "value": sum(one.count for one in judged.findings),
        "findings": [{"verdict": one.verdict.value, "count": one.count} for one in judged.findings],
    }
    return Reading(not condition.verdicts.isdisjoint({judged.verdict, *(one.verdict for one in judged.findings)}), said)


WATCHED: Mapping[About, Watched] = {
    About.VERDICT: Watched(Subject.GROUP, _verdict),
    About.LAG: Watched(Subject.GROUP, _lag, has_threshold=True),
    About.BEHIND: Watched(Subject.GROUP, _behind, has_threshold=True),
    About.OBJECTIVE: Watched(Subject.GROUP, _objective),
    About.DRAIN: Watched(Subject.GROUP, _drain, has_threshold=True),
    About.DEAD_LETTERS: Watched(Subject.GROUP, _dead_letters, has_threshold=True),
    About.RAISED: Watched(Subject.GROUP, _raised),
    About.CONFLICT: Watched(Subject.GROUP, _conflict),
    About.SCHEDULER: Watched(Subject.BROKER, _scheduler, has_threshold=True),
    About.BROKER: Watched(Subject.BROKER, _broker),
    About.DISK: Watched(Subject.BROKER, _disk, has_threshold=True),
    About.CLUSTER: Watched(Subject.CLUSTER, _cluster),
    About.CLUSTER_VERDICT: Watched(Subject.CLUSTER, _cluster_verdict),
}
