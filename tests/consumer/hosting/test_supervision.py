from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from consumer.hosting.supervision import HostingSnapshot, LeaseSnapshot, Placement, SupervisionPlan, decide
from consumer.models import DesiredState, LeaseState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STOP = DesiredState.STOP


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def lease(
    group: str = "billing",
    state: str = LeaseState.RUNNING,
    desired_state: str = DesiredState.RUN,
    *,
    on: str = "one",
    age_s: float = 100,
    silent_s: float | None = 1,
    is_gone: bool = False,
) -> LeaseSnapshot:
    heartbeat_at = None if silent_s is None else ago(silent_s)
    return LeaseSnapshot(uuid.uuid4(), group, on, state, desired_state, ago(age_s), heartbeat_at, is_gone)


def plan(
    wanted: dict[str, int], leases: list[LeaseSnapshot], slots: int | dict[str, int] = 8, **failures: list[datetime]
) -> SupervisionPlan:
    """`slots`: of the worker "one", or node → number."""
    return decide(HostingSnapshot(NOW, wanted, leases, slots if isinstance(slots, dict) else {"one": slots}, failures))


def groups(result: SupervisionPlan) -> list[str]:
    return [place.group for place in result.missing]


@pytest.mark.parametrize(
    ("wanted", "leases", "slots", "missing"),
    [
        pytest.param({"billing": 2}, [], 8, ["billing", "billing"], id="none run yet"),
        pytest.param({"billing": 2}, [lease(), lease()], 8, [], id="as many run as wanted"),
        pytest.param({"billing": 2}, [lease()], 8, ["billing"], id="one is missing"),
        pytest.param({"billing": 2}, [lease(state=LeaseState.PENDING, age_s=1)] * 2, 8, [], id="those offered count"),
        pytest.param({"billing": 0}, [], 8, [], id="none is wanted"),
        pytest.param({"billing": 3}, [], 0, [], id="no slots, no offers"),
        pytest.param({"billing": 5}, [lease(), lease()], 3, ["billing"], id="never more than free slots"),
        pytest.param({"billing": 5}, [lease()] * 4, 3, [], id="fewer slots than run"),
        pytest.param({"a": 4, "b": 2}, [], 3, ["a", "b", "a"], id="few slots are shared in proportion"),
        pytest.param({"a": 2, "b": 2}, [lease("a"), lease("a")], 3, ["b"], id="the one that has less goes first"),
        pytest.param(
            {"billing": 1},
            [lease(desired_state=STOP), lease(state=LeaseState.STOPPING)],
            3,
            ["billing"],
            id="those that stop do not count but keep their slots",
        ),
        pytest.param(
            {"billing": 1},
            [lease(desired_state=STOP), lease(desired_state=STOP)],
            2,
            [],
            id="and may leave no slot at all",
        ),
    ],
)
def test_leases_are_made_for_what_is_missing(
    wanted: dict[str, int], leases: list[LeaseSnapshot], slots: int, missing: list[str]
) -> None:
    result = plan(wanted, leases, slots)
    assert groups(result) == missing
    assert not result.lost
    assert not result.surplus


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        pytest.param(lease(is_gone=True), "its process is gone", id="the process is gone"),
        pytest.param(lease(state=LeaseState.STOPPING, is_gone=True), "its process is gone", id="also while it stops"),
        pytest.param(lease(silent_s=31), "silent for too long", id="no heartbeat"),
        pytest.param(lease(silent_s=None, age_s=31), "silent for too long", id="never a heartbeat"),
        pytest.param(lease(state=LeaseState.PENDING, age_s=26, silent_s=None), "no worker took it", id="not taken"),
    ],
)
def test_a_lost_instance_is_replaced(snapshot: LeaseSnapshot, reason: str) -> None:
    result = plan({"billing": 1}, [snapshot])
    assert result.lost == ((snapshot.id, reason),)
    assert groups(result) == ["billing"]


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(lease(silent_s=29), id="silent for less than the limit"),
        pytest.param(lease(state=LeaseState.PENDING, age_s=24, silent_s=None), id="offered a while ago"),
    ],
)
def test_a_slow_instance_is_not_given_up_early(snapshot: LeaseSnapshot) -> None:
    assert plan({"billing": 1}, [snapshot]).is_empty


def test_no_limit_is_shorter_than_a_starved_writer_of_sqlite_waits() -> None:
    assert plan({"billing": 1}, [lease(silent_s=15)]).is_empty
    assert plan({"billing": 1}, [lease(state=LeaseState.PENDING, age_s=15, silent_s=None)]).is_empty


def test_the_newest_are_surplus() -> None:
    old, middle, new = lease(age_s=300), lease(age_s=200), lease(age_s=100)
    assert set(plan({"billing": 1}, [new, old, middle]).surplus) == {middle.id, new.id}


def test_a_group_that_no_code_declares_is_stopped() -> None:
    running = lease()
    assert plan({"billing": 0}, [running]).surplus == (running.id,)


def test_the_slots_of_the_lost_are_free_again() -> None:
    gone = [lease(is_gone=True), lease(is_gone=True)]
    assert groups(plan({"billing": 2}, gone, slots=2)) == ["billing", "billing"]


@pytest.mark.parametrize(
    ("failed_s_ago", "is_started"),
    [
        pytest.param([1], False, id="right after a failure nothing starts"),
        pytest.param([2], True, id="two seconds after the first it does"),
        pytest.param([3, 10, 20], False, id="three failures wait for longer"),
        pytest.param([8, 10, 20], True, id="namely eight seconds"),
        pytest.param([61, 70, 80, 90, 100, 110, 120], True, id="never longer than a minute"),
        pytest.param([301] * 7, True, id="old failures are forgotten"),
    ],
)
def test_an_instance_that_fails_by_itself_is_started_again_with_growing_pauses(
    failed_s_ago: list[float], is_started: bool
) -> None:
    result = plan({"billing": 1, "other": 0}, [], billing=[ago(seconds) for seconds in failed_s_ago])
    assert bool(result.missing) == is_started


PENDING, STARTING, STOPPING = LeaseState.PENDING, LeaseState.STARTING, LeaseState.STOPPING


@pytest.mark.parametrize(
    ("wanted", "leases", "slots", "missing"),
    [
        pytest.param({"a": 2}, [], {"one": 4, "two": 4}, ["a one", "a two"], id="one on each of two workers"),
        pytest.param({"a": 1}, [lease("a")], {"one": 4, "two": 4}, [], id="nothing is missing"),
        pytest.param({"a": 2}, [lease("a")], {"one": 9, "two": 1}, ["a two"], id="not where the other one is"),
        pytest.param(
            {"a": 2}, [lease("a", PENDING, age_s=1)], {"one": 9, "two": 1}, ["a two"], id="nor where it is about to be"
        ),
        pytest.param({"a": 2}, [lease("a")], {"one": 4, "two": 0}, ["a one"], id="but where there is room"),
        pytest.param(
            {"a": 3},
            [lease("a"), lease("a", on="two")],
            {"one": 9, "two": 2},
            ["a one"],
            id="among equals where more slots are free",
        ),
        pytest.param(
            {"a": 2, "b": 2},
            [],
            {"one": 2, "two": 2},
            ["a one", "b two", "a two", "b one"],
            id="two groups on two workers",
        ),
        pytest.param(
            {"a": 2},
            [lease("a", on="gone"), lease("a", desired_state=STOP, on="two")],
            {"one": 1, "two": 1},
            ["a one"],
            id="one that stops keeps the slot of its own worker only",
        ),
    ],
)
def test_the_instances_of_a_group_go_to_different_workers(
    wanted: dict[str, int], leases: list[LeaseSnapshot], slots: dict[str, int], missing: list[str]
) -> None:
    assert [f"{place.group} {place.worker}" for place in plan(wanted, leases, slots).missing] == missing


def test_an_offer_to_a_worker_that_stopped_is_made_to_another() -> None:
    offer = lease(state=PENDING, age_s=1, silent_s=None, on="two")
    result = plan({"billing": 1}, [offer])
    assert result.lost == ((offer.id, "its worker stopped before it began"),)
    assert result.missing == (Placement("billing", "one"),)


TWO = {"one": 4, "two": 4}


def test_a_group_on_one_worker_is_spread_by_one_more_instance_and_then_one_less() -> None:
    old, new = lease(age_s=300), lease(age_s=200)
    assert plan({"billing": 2}, [old, new], TWO) == SupervisionPlan(missing=(Placement("billing", "two"),))
    for state in (PENDING, STARTING):
        assert plan({"billing": 2}, [old, new, lease(state=state, age_s=1, on="two")], TWO).is_empty
    moved = lease(age_s=1, on="two")
    assert plan({"billing": 2}, [old, new, moved], TWO) == SupervisionPlan(surplus=(new.id,))
    assert plan({"billing": 2}, [old, moved], TWO).is_empty


@pytest.mark.parametrize(
    ("wanted", "leases", "slots"),
    [
        pytest.param({"a": 1}, [lease("a")], TWO, id="a single instance stays"),
        pytest.param({"a": 2}, [lease("a")] * 2, {"one": 4, "two": 0}, id="no room elsewhere"),
        pytest.param({"a": 2}, [lease("a")] * 2, {"one": 4}, id="no other worker"),
        pytest.param({"a": 2}, [lease("a"), lease("a", STARTING)], TWO, id="not before all run"),
        pytest.param({"a": 3}, [lease("a"), lease("a"), lease("a", on="two")], TWO, id="two workers are enough"),
    ],
)
def test_what_is_spread_or_cannot_be_stays(
    wanted: dict[str, int], leases: list[LeaseSnapshot], slots: dict[str, int]
) -> None:
    assert plan(wanted, leases, slots).is_empty


def test_groups_are_spread_one_by_one_and_only_when_nothing_is_missing() -> None:
    together = [lease("a"), lease("a"), lease("b"), lease("b")]
    assert plan({"a": 2, "b": 2}, together, TWO).missing == (Placement("a", "two"),)
    assert plan({"a": 2, "b": 2, "c": 1}, together, TWO).missing == (Placement("c", "two"),)


def test_a_group_whose_instances_fail_is_not_spread_until_they_may_start_again() -> None:
    together = [lease(), lease()]
    assert plan({"billing": 2}, together, TWO, billing=[ago(1)]).is_empty
    assert not plan({"billing": 2}, together, TWO, billing=[ago(3)]).is_empty


def test_no_running_instance_stops_before_as_many_run_as_are_wanted() -> None:
    running, begun = [lease(age_s=300), lease(age_s=200)], lease(state=STARTING, age_s=1, on="two")
    assert plan({"billing": 2}, [*running, begun], TWO).is_empty
    assert plan({"billing": 1}, [*running, begun], TWO).surplus == (running[1].id, begun.id)
    assert set(plan({"billing": 0}, [*running, begun], TWO).surplus) == {*(one.id for one in running), begun.id}


def drained(wanted: dict[str, int], leases: list[LeaseSnapshot], slots: dict[str, int]) -> SupervisionPlan:
    """The worker "one" is draining."""
    return decide(HostingSnapshot(NOW, wanted, leases, slots, leaving={"one"}))


def test_instances_of_a_draining_worker_run_elsewhere_before_they_stop() -> None:
    old = [lease(), lease()]
    began = drained({"billing": 2}, old, {"one": 8, "two": 8})
    assert began == SupervisionPlan(missing=(Placement("billing", "two"), Placement("billing", "two")))
    coming = [lease(on="two"), lease(on="two", state=LeaseState.STARTING)]
    assert drained({"billing": 2}, [*old, *coming], {"one": 8, "two": 8}).is_empty
    settled = drained({"billing": 2}, [*old, lease(on="two"), lease(on="two")], {"one": 8, "two": 8})
    assert settled == SupervisionPlan(surplus=tuple(one.id for one in old))


def test_without_room_elsewhere_a_draining_worker_stops_its_instances_all_the_same() -> None:
    only = [lease(), lease()]
    assert drained({"billing": 2}, only, {"one": 8}).surplus == tuple(one.id for one in only)
    # Where one finds room, the others are waited for only as long as it is starting.
    coming = lease(on="two", state=LeaseState.STARTING)
    assert drained({"billing": 2}, [*only, coming], {"one": 8, "two": 1}).is_empty
    assert set(drained({"billing": 2}, [*only, lease(on="two")], {"one": 8, "two": 1}).surplus) == {
        one.id for one in only
    }


def test_a_draining_worker_keeps_its_instances_while_those_elsewhere_fail() -> None:
    old = [lease(), lease()]

    def failing(leases: list[LeaseSnapshot], slots: dict[str, int], wanted: int = 2) -> SupervisionPlan:
        snapshot = HostingSnapshot(NOW, {"billing": wanted}, leases, slots, {"billing": [ago(1)]}, leaving={"one"})
        return decide(snapshot)

    assert failing(old, {"one": 8, "two": 8}).is_empty
    assert failing([*old, lease(on="two")], {"one": 8, "two": 8}).is_empty
    every = {one.id for one in old}
    assert set(failing(old, {"one": 8}).surplus) == every, "no room elsewhere"
    assert set(failing(old, {"one": 8, "two": 8}, wanted=0).surplus) == every, "stopped"


def test_a_draining_worker_gets_no_instance() -> None:
    assert drained({"billing": 2}, [], {"one": 8}).is_empty
    assert drained({"billing": 1}, [lease(on="two")], {"one": 8, "two": 1}).is_empty
