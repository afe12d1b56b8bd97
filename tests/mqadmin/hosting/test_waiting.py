"""Why instances wait: each reason by itself, and that their numbers add up to what is missing."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.hosting.supervision import SILENT_AFTER
from mqadmin.hosting.sentences import reason_words
from mqadmin.hosting.waiting import GROUPS_NAMED_MAX, OwnLease, Situation, Why, reasons
from mqadmin.hosting.workers import Instance, Worker, WorkerState

NOW = datetime(2026, 11, 23, tzinfo=UTC)
EMPTY = Situation(now=NOW, cluster="prod", wanted=2, is_stopped=False, leases=(), workers=())


def lease(state: str = "running", quiet_s: float = 0) -> OwnLease:
    return OwnLease(state, NOW - timedelta(seconds=quiet_s))


def worker(*groups: str, state: WorkerState = WorkerState.OK, slots: int = 4, cluster: str = "prod") -> Worker:
    instances = tuple(Instance(group, group, cluster, 1, is_ending=False) for group in groups)
    return Worker("loops@here", uuid.UUID(int=1), 1, state, False, slots, instances, NOW, NOW)


def why(**changes: Any) -> list[tuple[str, int]]:
    return [(one.why.value, one.count) for one in reasons(replace(EMPTY, **changes))]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"leases": (lease(), lease())}, []),
        ({"wanted": 0}, []),
        ({"wanted": 0, "is_stopped": True}, []),
        ({"is_stopped": True, "leases": (lease(),)}, [("stopped", 2)]),
        ({}, [("no_worker", 2)]),
        ({"workers": (worker(state=WorkerState.SILENT),)}, [("no_worker", 2)]),
        ({"workers": (worker(state=WorkerState.DRAINING), worker(state=WorkerState.STOPPING))}, [("leaving", 2)]),
        ({"workers": (worker("mail", slots=1),), "leases": (lease(),)}, [("slots_taken", 1)]),
        ({"workers": (worker(),)}, [("unplaced", 2)]),
        ({"workers": (worker(),), "is_declared": False}, [("undeclared", 2)]),
        ({"workers": (worker(),), "failures": (NOW - timedelta(seconds=1),)}, [("failed", 2)]),
        ({"workers": (worker(),), "failures": (NOW - timedelta(seconds=3),)}, [("unplaced", 2)]),
        ({"leases": (lease(), lease("starting"))}, [("starting", 1)]),
        ({"leases": (lease("pending", 1), lease("pending", 6))}, [("starting", 1), ("untaken", 1)]),
        ({"leases": (lease(), lease(quiet_s=11))}, [("silent", 1)]),
        ({"leases": (lease(quiet_s=9), lease(quiet_s=9))}, []),
        (
            {"wanted": 3, "leases": (lease(quiet_s=20), lease("starting"))},
            [("starting", 1), ("silent", 1), ("no_worker", 1)],
        ),
    ],
)
def test_reasons(changes: dict[str, Any], expected: list[tuple[str, int]]) -> None:
    assert why(**changes) == expected


def test_who_has_the_slots_is_told_but_no_group_of_another_cluster() -> None:
    full = worker("mail", "mail", "billing", slots=3)
    elsewhere = worker("secret", slots=1, cluster="other")
    (reason,) = reasons(replace(EMPTY, workers=(full, elsewhere, worker(state=WorkerState.DRAINING))))
    assert reason.numbers == {
        "slots": 4,
        "groups": [{"group": "mail", "count": 2}, {"group": "billing", "count": 1}],
        "others": 1,
        "ending": 0,
        "leaving_workers": 1,
    }
    words = reason_words(reason)
    assert "of the workers’ 4 slots all are taken (mail × 2, billing × 1, others × 1)" in words
    assert words.endswith("1 further worker is being drained or stops, and takes none.")


def test_of_many_groups_the_largest_are_named() -> None:
    full = worker(*(f"g{number}" for number in range(9)), "g8", slots=10)
    (reason,) = reasons(replace(EMPTY, workers=(full,)))
    assert len(reason.numbers["groups"]) == GROUPS_NAMED_MAX
    assert (reason.numbers["groups"][0]["group"], reason.numbers["others"]) == ("g8", 4)


def test_when_an_instance_starts_again_is_told() -> None:
    failures = tuple(NOW - timedelta(seconds=second) for second in (1, 20, 60))
    (reason,) = reasons(replace(EMPTY, workers=(worker(),), failures=failures))
    assert (reason.why, reason.numbers) == (Why.FAILED, {"failures": 3, "seconds": 7})
    assert reason_words(reason).endswith("the next one starts in 7 s.")


@given(
    st.integers(0, 6),
    st.lists(st.builds(lease, st.sampled_from(["pending", "starting", "running"]), st.floats(0, 40)), max_size=6),
    st.lists(st.builds(worker, state=st.sampled_from(WorkerState), slots=st.integers(1, 3)), max_size=3),
)
def test_the_counts_are_those_that_do_not_run_and_each_has_words(
    wanted: int, leases: Sequence[OwnLease], workers: Sequence[Worker]
) -> None:
    running = sum(one.state == "running" and NOW - one.heard_at < SILENT_AFTER / 3 for one in leases)
    found = reasons(replace(EMPTY, wanted=wanted, leases=leases, workers=workers))
    assert bool(found) == (running < wanted)
    if found:
        assert sum(one.count for one in found) >= wanted - running
    assert all(reason_words(one) for one in found)
