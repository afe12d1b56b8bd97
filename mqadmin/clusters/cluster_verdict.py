"""Judges a cluster: the worst of its groups, brokers and schedulers, with all that somebody should look at. Pure.

The table is the specification: the worst comes first, and gives the cluster its word. A group that is REWOUND, BUSY or
UNKNOWN needs nobody, so it is no word for a cluster; of one that cannot be reached nothing else is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from mqadmin.clusters.models.cluster import ClusterState
from mqadmin.clusters.models.group import Verdict


class ClusterVerdict(StrEnum):
    """Whether a cluster is all right, the worst first."""

    UNREACHABLE = "unreachable"
    STALLED = "stalled"
    PARTIAL = "partial"
    NOT_RUNNING = "not_running"
    STOPPED = "stopped"
    FAILING = "failing"
    SLOW = "slow"
    OK = "ok"
    QUIET = "quiet"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ClusterInput:
    """`groups`: how many have each verdict. `away_count`: brokers that do not answer, of `broker_count`.

    `undriven_count`: schedulers of our brokers that no worker runs.
    """

    state: str
    broker_count: int = 0
    away_count: int = 0
    undriven_count: int = 0
    groups: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """What is not all right, and of how many."""

    verdict: ClusterVerdict
    count: int


class ClusterJudgement(NamedTuple):
    """`findings`: the worst first; none of a cluster that is all right."""

    verdict: ClusterVerdict
    findings: tuple[Finding, ...] = ()


# The worst first: what nothing else is known beside, what does not move, what moves badly.
FINDINGS: Mapping[ClusterVerdict, Callable[[ClusterInput], int]] = {
    ClusterVerdict.UNREACHABLE: lambda cluster: int(cluster.state == ClusterState.UNREACHABLE),
    ClusterVerdict.STALLED: lambda cluster: cluster.groups.get(Verdict.STALLED, 0),
    ClusterVerdict.PARTIAL: lambda cluster: cluster.away_count or int(cluster.state == ClusterState.PARTIAL),
    ClusterVerdict.NOT_RUNNING: lambda cluster: cluster.undriven_count,
    ClusterVerdict.STOPPED: lambda cluster: cluster.groups.get(Verdict.STOPPED, 0),
    ClusterVerdict.FAILING: lambda cluster: cluster.groups.get(Verdict.FAILING, 0),
    ClusterVerdict.SLOW: lambda cluster: cluster.groups.get(Verdict.SLOW, 0),
}


def judge_cluster(cluster: ClusterInput) -> ClusterJudgement:
    found = tuple(Finding(verdict, count) for verdict, counted in FINDINGS.items() if (count := counted(cluster)))
    if found and found[0].verdict == ClusterVerdict.UNREACHABLE:
        return ClusterJudgement(ClusterVerdict.UNREACHABLE, found[:1])
    if found:
        return ClusterJudgement(found[0].verdict, found)
    if cluster.state == ClusterState.NEW:
        return ClusterJudgement(ClusterVerdict.UNKNOWN)
    known = {verdict for verdict, count in cluster.groups.items() if count}
    if known == {Verdict.UNKNOWN}:
        return ClusterJudgement(ClusterVerdict.UNKNOWN)
    return ClusterJudgement(ClusterVerdict.QUIET if known == {Verdict.QUIET} else ClusterVerdict.OK)
