"""How long a message has waited, where samples say so: up to the newest sample, not up to now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mqadmin.clusters.figures import Behind
from mqadmin.clusters.models import Cluster, ClusterKind, ClusterState, Group

SAMPLED = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
NOW = SAMPLED + timedelta(seconds=14)


def group(since: datetime, *, kind: str = ClusterKind.APACHE, state: str = ClusterState.REACHABLE) -> Group:
    method = "store_time" if kind == ClusterKind.OURS else "observed"
    return Group(
        cluster=Cluster(name="prod", kind=kind, state=state),
        name="billing",
        lag=3,
        behind_since=since,
        behind_method=method,
        offsets_seen_at=SAMPLED,
        allowed_lag_s=10,
    )


def test_message_of_the_newest_sample_has_not_been_seen_to_wait() -> None:
    found = group(SAMPLED)
    assert found.behind.is_just_seen
    assert found.is_within_objective(NOW), "14 s is the age of the sample"


def test_message_of_an_older_sample_waited_until_the_newest() -> None:
    found = group(SAMPLED - timedelta(seconds=15))
    assert found.behind.seen_until(NOW) - found.behind_since == timedelta(seconds=15)
    assert found.is_within_objective(NOW) is False


@pytest.mark.parametrize("changes", [{"kind": ClusterKind.OURS}, {"state": ClusterState.PARTIAL}])
def test_it_counts_up_to_now_where_that_is_known_or_no_sample_can_say(changes: dict[str, str]) -> None:
    assert group(SAMPLED, **changes).behind.seen_until(NOW) == NOW
    assert not group(SAMPLED, **changes).behind.is_just_seen


def test_what_is_exact_of_a_sampled_group_counts_up_to_the_sample_too() -> None:
    found = group(SAMPLED - timedelta(seconds=15))
    found.behind_method = "store_time"
    assert (found.behind.told_method, found.behind.is_at_least) == ("exact", False)
    assert found.behind.seen_until(NOW) == SAMPLED, "whether it waits still is not known"


def test_sample_that_is_newer_than_now_changes_nothing() -> None:
    assert Behind(SAMPLED, "observed", NOW).seen_until(SAMPLED) == SAMPLED
