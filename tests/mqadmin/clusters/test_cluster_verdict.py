"""The word of a cluster: the worst of what is in it, and all that somebody should look at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqadmin.clusters.cluster_reasons import cluster_reason
from mqadmin.clusters.cluster_verdict import ClusterInput, ClusterVerdict, judge_cluster
from mqadmin.clusters.models import NEEDS_ATTENTION, ClusterState, Verdict


def cluster(state: str = ClusterState.REACHABLE, **values: int) -> ClusterInput:
    parts = {name: values.pop(name) for name in ("away_count", "undriven_count") if name in values}
    return ClusterInput(state=state, groups=values, **parts)


CASES = {
    "all right": (cluster(ok=9, quiet=1), "ok", "all groups and brokers are all right"),
    "nothing to do": (cluster(quiet=3), "quiet", "no messages arrived lately"),
    "no group yet": (cluster(), "ok", "all groups and brokers are all right"),
    "not asked yet": (cluster(ClusterState.NEW), "unknown", "not known yet"),
    "nothing known of its groups": (cluster(unknown=3), "unknown", "not known yet"),
    "what needs nobody": (cluster(ok=1, busy=2, rewound=1, unknown=1), "ok", "all groups and brokers are all right"),
    "stalled groups, a broker away": (
        cluster(ClusterState.PARTIAL, stalled=3, ok=9, away_count=1),
        "stalled",
        "3 groups STALLED, 1 broker away",
    ),
    "a broker away, slow groups": (cluster(slow=1, away_count=2), "partial", "2 brokers away, 1 group SLOW"),
    "a broker that is not listed": (cluster(ClusterState.PARTIAL, ok=1), "partial", "1 broker away"),
    "no scheduler": (
        cluster(undriven_count=1, stopped=2),
        "not_running",
        "1 scheduler that no worker runs, 2 groups STOPPED",
    ),
    "messages die": (cluster(failing=1, slow=1200), "failing", "1 group FAILING, 1,200 groups SLOW"),
    "it does not answer": (
        cluster(ClusterState.UNREACHABLE, stalled=3, away_count=1),
        "unreachable",
        "the cluster does not answer",
    ),
}


@pytest.mark.parametrize(("known", "word", "reason"), CASES.values(), ids=CASES.keys())
def test_worst_of_a_cluster_is_its_word(known: ClusterInput, word: str, reason: str) -> None:
    judged = judge_cluster(known)
    assert (judged.verdict, cluster_reason(judged)) == (word, reason)


def test_every_verdict_that_needs_somebody_is_a_word_of_a_cluster() -> None:
    for verdict in NEEDS_ATTENTION:
        assert judge_cluster(cluster(**{verdict: 1})).verdict == verdict.value
    assert {word for _, word, _ in CASES.values()} | {"slow", "stopped"} == set(ClusterVerdict)


@given(st.dictionaries(st.sampled_from(Verdict), st.integers(0, 5)), st.integers(0, 3))
def test_cluster_is_all_right_when_nothing_in_it_needs_somebody(groups: dict[Verdict, int], away_count: int) -> None:
    judged = judge_cluster(ClusterInput(state=ClusterState.REACHABLE, groups=groups, away_count=away_count))
    is_calm = not away_count and not any(groups.get(verdict) for verdict in NEEDS_ATTENTION)
    assert is_calm == (judged.findings == ())
    assert sum(one.count for one in judged.findings) == away_count + sum(groups.get(one, 0) for one in NEEDS_ATTENTION)
