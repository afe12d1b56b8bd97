"""What each kind of rule calls holding: the table, with what is not known."""

from __future__ import annotations

import pytest

from mqadmin.alerts.conditions import (
    WATCHED,
    About,
    BrokerFacts,
    ClusterFacts,
    Condition,
    Facts,
    GroupFacts,
    matches,
    read,
)
from mqadmin.clusters.cluster_verdict import ClusterInput, judge_cluster
from mqadmin.clusters.figures import Drain, DrainKind
from mqadmin.clusters.models import ClusterState


def group(**values: object) -> GroupFacts:
    return GroupFacts(cluster="prod", name="billing", **values)  # type: ignore[arg-type]


def broker(**values: object) -> BrokerFacts:
    return BrokerFacts(cluster="prod", name="a", **values)  # type: ignore[arg-type]


def watching(*verdicts: str) -> Condition:
    return Condition(about=About.CLUSTER_VERDICT, verdicts=frozenset(verdicts))


def judged(state: str = ClusterState.REACHABLE, away_count: int = 0, **groups: int) -> ClusterFacts:
    found = judge_cluster(ClusterInput(state=state, away_count=away_count, groups=groups))
    return ClusterFacts(cluster="prod", judged=found)


BAD = frozenset({"stalled", "stopped"})
LATE = {"lag": 10, "behind_s": 70, "allowed_lag_s": 60}
CASES = [
    ("verdict that is watched", Condition(about=About.VERDICT, verdicts=BAD), group(verdict="stalled"), True),
    ("verdict that is not", Condition(about=About.VERDICT, verdicts=BAD), group(verdict="slow"), False),
    ("verdict not known", Condition(about=About.VERDICT, verdicts=BAD), group(verdict="unknown"), None),
    (
        "verdict unknown, watched",
        Condition(about=About.VERDICT, verdicts=frozenset({"unknown"})),
        group(verdict="unknown"),
        True,
    ),
    ("lag at the threshold", Condition(about=About.LAG, threshold=100), group(lag=100), True),
    ("lag below", Condition(about=About.LAG, threshold=100), group(lag=99), False),
    ("lag not known", Condition(about=About.LAG, threshold=100), group(lag=None), None),
    ("waits too long", Condition(about=About.BEHIND, threshold=60), group(lag=1, behind_s=60), True),
    ("waits", Condition(about=About.BEHIND, threshold=60), group(lag=1, behind_s=59), False),
    ("wait not known", Condition(about=About.BEHIND, threshold=60), group(lag=None, behind_s=99), None),
    ("over its objective", Condition(about=About.OBJECTIVE), group(**LATE), True),
    ("within its objective", Condition(about=About.OBJECTIVE), group(lag=9, behind_s=60, allowed_lag_s=60), False),
    (
        "over its objective in messages",
        Condition(about=About.OBJECTIVE),
        group(lag=9, behind_s=1, allowed_lag_s=60, allowed_lag=8),
        True,
    ),
    ("objective not known", Condition(about=About.OBJECTIVE), group(lag=9, behind_s=99), None),
    ("late, never gone", Condition(about=About.DRAIN, threshold=10), group(**LATE, drain=Drain(DrainKind.NEVER)), True),
    (
        "keeps up at equal rates",
        Condition(about=About.DRAIN, threshold=10),
        group(lag=10, behind_s=1, allowed_lag_s=60, drain=Drain(DrainKind.NEVER)),
        False,
    ),
    (
        "late, gone in eleven minutes",
        Condition(about=About.DRAIN, threshold=10),
        group(**LATE, drain=Drain(DrainKind.IN, 660)),
        True,
    ),
    (
        "late, gone in nine",
        Condition(about=About.DRAIN, threshold=10),
        group(**LATE, drain=Drain(DrainKind.IN, 540)),
        False,
    ),
    ("late, rates not known", Condition(about=About.DRAIN, threshold=10), group(**LATE), None),
    (
        "dead letters in its window",
        Condition(about=About.DEAD_LETTERS, threshold=3, window_minutes=15),
        group(dead_counts={15: 3, 60: 9}),
        True,
    ),
    (
        "dead letters in another window",
        Condition(about=About.DEAD_LETTERS, threshold=3, window_minutes=5),
        group(dead_counts={60: 9}),
        False,
    ),
    ("failure raised", Condition(about=About.RAISED), group(raised_count=2, raised_dead_count=31), True),
    ("no failure raised", Condition(about=About.RAISED), group(dead_counts={15: 3}), False),
    ("conflict", Condition(about=About.CONFLICT), group(conflict="topics"), True),
    ("no conflict", Condition(about=About.CONFLICT), group(), False),
    ("scheduler late", Condition(about=About.SCHEDULER, threshold=30), broker(late_s=30.0, is_driven=True), True),
    ("scheduler in time", Condition(about=About.SCHEDULER, threshold=30), broker(late_s=1.0, is_driven=True), False),
    ("scheduler without a worker", Condition(about=About.SCHEDULER, threshold=30), broker(is_driven=False), True),
    ("no scheduler of ours", Condition(about=About.SCHEDULER, threshold=30), broker(), None),
    ("broker away", Condition(about=About.BROKER), broker(is_answering=False), True),
    ("broker there", Condition(about=About.BROKER), broker(is_answering=True), False),
    ("broker never asked", Condition(about=About.BROKER), broker(), None),
    ("disk full", Condition(about=About.DISK, threshold=80), broker(disk_percent=80.0), True),
    ("disk not full", Condition(about=About.DISK, threshold=80), broker(disk_percent=79.0), False),
    ("disk not known", Condition(about=About.DISK, threshold=80), broker(), None),
    ("cluster away", Condition(about=About.CLUSTER), ClusterFacts(cluster="prod", is_reachable=False), True),
    ("cluster there", Condition(about=About.CLUSTER), ClusterFacts(cluster="prod", is_reachable=True), False),
    ("cluster never asked", Condition(about=About.CLUSTER), ClusterFacts(cluster="prod"), None),
    ("cluster's worst is watched", watching("stalled"), judged(stalled=3, away_count=1), True),
    ("behind the worst is watched", watching("partial"), judged(stalled=3, away_count=1), True),
    ("cluster has others", watching("partial", "unreachable"), judged(stalled=3), False),
    ("cluster is all right", watching("stalled"), judged(ok=3), False),
    ("cluster does not answer", watching("stalled"), judged(ClusterState.UNREACHABLE), None),
    ("that it does not is watched", watching("unreachable"), judged(ClusterState.UNREACHABLE), True),
    ("nothing known of a cluster", watching("stalled"), judged(ClusterState.NEW), None),
    ("that nothing is is watched", watching("unknown"), judged(ClusterState.NEW), True),
]


@pytest.mark.parametrize(("condition", "facts", "holds"), [one[1:] for one in CASES], ids=[one[0] for one in CASES])
def test_a_condition_holds_does_not_or_is_not_known(condition: Condition, facts: Facts, holds: bool | None) -> None:
    assert read(condition, facts, is_firing=False).holds is holds


def test_every_kind_has_cases_for_both() -> None:
    for about in About:
        assert {one[3] for one in CASES if one[1].about == about} >= {True, False}, about


def test_nothing_of_a_cluster_that_does_not_answer_is_known() -> None:
    facts = group(verdict="stalled", is_known=False)
    assert read(Condition(about=About.VERDICT, verdicts=BAD), facts, is_firing=True).holds is None


@pytest.mark.parametrize(("lag", "holds"), [(90, True), (89, False)])
def test_what_fires_ends_below_nine_tenths_of_the_threshold(lag: int, holds: bool) -> None:
    assert read(Condition(about=About.LAG, threshold=100), group(lag=lag), is_firing=True).holds is holds


@pytest.mark.parametrize(("percent", "holds"), [(78.0, True), (77.0, False)])
def test_a_full_disk_ends_two_points_below(percent: float, holds: bool) -> None:
    facts = broker(disk_percent=percent)
    assert read(Condition(about=About.DISK, threshold=80), facts, is_firing=True).holds is holds


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*", "anything", True),
        ("billing-*", "billing-eu", True),
        ("billing-*", "Billing-eu", False),
        ("billing", "billing-eu", False),
        ("b?lling", "billing", True),
        ("%RETRY%*", "%RETRY%a", True),
    ],
)
def test_patterns(pattern: str, name: str, fits: bool) -> None:
    assert matches(pattern, name) is fits


def test_the_reading_of_a_cluster_has_all_that_is_not_all_right() -> None:
    reading = read(watching("partial"), judged(stalled=3, away_count=1), is_firing=False)
    found = [{"verdict": "stalled", "count": 3}, {"verdict": "partial", "count": 1}]
    assert reading.said == {"verdict": "stalled", "value": 4, "findings": found}


def test_a_cluster_has_no_other_name_to_fit() -> None:
    assert Condition(about=About.CLUSTER, clusters="pr*", names="billing").is_about("prod", "")
    assert set(WATCHED) == set(About)
