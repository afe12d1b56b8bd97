"""Supervision against the database: what is written, what is offered."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from consumer.hosting import leases, loops_worker
from consumer.hosting.leases import Worker
from consumer.hosting.machine import this_machine
from consumer.hosting.supervisor import prune, supervise
from consumer.listener import Declaration, GroupSpec, Registry
from consumer.models import DesiredState, HostedGroup, InstanceLease, LeaseState, LoopsWorker
from consumer.signals import instance_ended, instance_started

pytestmark = pytest.mark.django_db(transaction=True)

WORKER = Worker("loops-1@here", uuid.uuid4())


def specs(**wanted: int) -> dict[str, GroupSpec]:
    registry = Registry()
    for group, number in wanted.items():
        registry.declare(Declaration(group, "orders", print, {"wanted_instances": number}))
    registry.freeze()
    return dict(registry.groups)


class Offers(list[uuid.UUID]):
    """Leases in the order in which they were offered."""

    def __call__(self, lease_id: uuid.UUID, node: str) -> None:
        assert InstanceLease.objects.get(id=lease_id).worker == node
        self.append(lease_id)


@pytest.fixture
def offered() -> Offers:
    return Offers()


@pytest.fixture
def worker() -> Worker:
    loops_worker.register(WORKER, slots=4)
    return WORKER


@pytest.fixture
def told() -> Iterator[list[tuple[str, str]]]:
    events: list[tuple[str, str]] = []

    def started(lease: InstanceLease, **_: object) -> None:
        events.append(("started", lease.group.group))

    def ended(lease: InstanceLease, **_: object) -> None:
        events.append(("ended", lease.end_reason))

    instance_started.connect(started)
    instance_ended.connect(ended)
    yield events
    instance_started.disconnect(started)
    instance_ended.disconnect(ended)


def states() -> list[str]:
    return list(InstanceLease.objects.order_by("created_at").values_list("state", flat=True))


def test_declared_groups_get_rows_and_their_instances_are_offered(worker: Worker, offered: Offers) -> None:
    supervise(specs(billing=2, mailing=1), offered)
    assert set(HostedGroup.objects.values_list("group", "wanted_instances")) == {("billing", 2), ("mailing", 1)}
    assert len(offered) == 3
    assert states() == ["pending"] * 3
    supervise(specs(billing=2, mailing=1), offered)
    assert len(offered) == 3


def test_a_group_of_two_clusters_is_two_with_a_number_each(worker: Worker, offered: Offers) -> None:
    registry = Registry()
    registry.declare(Declaration("billing", "orders", print, {"wanted_instances": 2}, cluster="payments"))
    registry.freeze(["payments"])
    declared = {**specs(billing=1), **registry.groups}
    supervise(declared, offered)
    assert set(HostedGroup.objects.values_list("cluster", "group", "wanted_instances")) == {
        ("", "billing", 1),
        ("payments", "billing", 2),
    }
    assert sorted(InstanceLease.objects.values_list("group__cluster", flat=True)) == ["", "payments", "payments"]
    HostedGroup.objects.filter(cluster="payments").update(wanted_instances=0)
    supervise(declared, offered)
    assert [lease.group.key for lease in InstanceLease.objects.filter(state="pending").select_related("group")] == [
        "billing"
    ]


def test_each_lease_names_the_worker_that_it_is_offered_to(worker: Worker, offered: Offers) -> None:
    loops_worker.register(Worker("loops-2@here", uuid.uuid4()), slots=4)
    supervise(specs(billing=2), offered)
    assert set(InstanceLease.objects.values_list("worker", flat=True)) == {"loops-1@here", "loops-2@here"}


def test_nothing_is_offered_while_no_worker_is_there(offered: Offers) -> None:
    supervise(specs(billing=2), offered)
    assert offered == []


def test_a_worker_that_is_silent_stopping_or_dead_has_no_slots(worker: Worker, offered: Offers) -> None:
    row = LoopsWorker.objects.get()
    for change in (
        {"heartbeat_at": timezone.now() - timedelta(seconds=31)},
        {"is_stopping": True},
        {"process_start": 1},
    ):
        LoopsWorker.objects.filter(id=row.id).update(**change)
        supervise(specs(billing=1), offered)
        assert offered == []
        row.save()
    supervise(specs(billing=1), offered)
    assert len(offered) == 1


def test_the_number_that_an_operator_set_stands_until_the_codes_own_number_changes(
    worker: Worker, offered: Offers
) -> None:
    supervise(specs(billing=1), offered)
    HostedGroup.objects.update(wanted_instances=3)
    supervise(specs(billing=1), offered)
    assert len(offered) == 3
    supervise(specs(billing=2), offered)
    assert HostedGroup.objects.get().wanted_instances == 2


def test_a_lease_is_claimed_once(worker: Worker, offered: Offers) -> None:
    supervise(specs(billing=1), offered)
    lease = leases.claim(offered[0], worker)
    assert lease is not None
    assert (lease.state, lease.worker, lease.machine) == ("starting", "loops-1@here", this_machine())
    assert leases.claim(offered[0], worker) is None


def test_a_stale_offer_starts_nothing(worker: Worker, offered: Offers) -> None:
    supervise(specs(billing=1), offered)
    leases.end(offered[0], "no worker took it")
    assert leases.claim(offered[0], worker) is None


def test_surplus_instances_are_asked_to_stop_and_pending_ones_are_withdrawn(worker: Worker, offered: Offers) -> None:
    supervise(specs(billing=3), offered)
    leases.claim(offered[0], worker)
    leases.mark_running(offered[0], "client-1")
    leases.claim(offered[1], worker)
    leases.mark_running(offered[1], "client-2")
    HostedGroup.objects.update(wanted_instances=1)
    supervise(specs(billing=3), offered)
    assert [leases.heartbeat(lease_id) for lease_id in offered[:2]] == [DesiredState.RUN, DesiredState.STOP]
    assert states() == ["running", "running", "ended"]


def test_the_instance_of_a_dead_process_is_ended_and_replaced(
    worker: Worker, offered: Offers, told: list[tuple[str, str]]
) -> None:
    supervise(specs(billing=1), offered)
    leases.claim(offered[0], worker)
    leases.mark_running(offered[0], "client-1")
    InstanceLease.objects.update(process_start=1)
    supervise(specs(billing=1), offered)
    assert states() == ["ended", "pending"]
    assert told == [("started", "billing"), ("ended", "its process is gone")]
    assert len(offered) == 2


def test_a_process_of_another_machine_is_not_taken_for_dead(worker: Worker, offered: Offers) -> None:
    supervise(specs(billing=1), offered)
    leases.claim(offered[0], worker)
    InstanceLease.objects.update(process_start=1, machine="another")
    supervise(specs(billing=1), offered)
    assert states() == ["starting"]


def test_a_worker_that_comes_back_ends_what_its_predecessor_ran(worker: Worker, offered: Offers) -> None:
    supervise(specs(billing=2), offered)
    for lease_id in offered:
        leases.claim(lease_id, worker)
    other = Worker("loops-2@here", uuid.uuid4())
    assert loops_worker.register(other, slots=4) == 0
    successor = Worker(worker.node, uuid.uuid4())
    assert loops_worker.register(successor, slots=4) == 2
    assert set(InstanceLease.objects.values_list("end_reason", flat=True)) == {"its worker was restarted"}
    loops_worker.heartbeat(worker)
    assert LoopsWorker.objects.get(node=worker.node).boot == successor.boot


def test_a_worker_that_stops_hands_its_instances_over_before_they_stop(worker: Worker, offered: Offers) -> None:
    supervise(specs(billing=1), offered)
    leases.claim(offered[0], worker)
    leases.mark_running(offered[0], "one")
    other = Worker("loops-2@here", uuid.uuid4())
    loops_worker.register(other, slots=4)
    loops_worker.mark_stopping(worker)
    supervise(specs(billing=1), offered)
    assert not loops_worker.stop_what_nobody_takes(worker)
    assert leases.heartbeat(offered[0]) == DesiredState.RUN
    leases.claim(offered[1], other)
    leases.mark_running(offered[1], "two")
    supervise(specs(billing=1), offered)
    assert leases.heartbeat(offered[0]) == DesiredState.STOP
    assert loops_worker.stop_what_nobody_takes(worker)


def test_the_last_worker_that_stops_asks_its_instances_to_stop_and_gets_no_new_ones(
    worker: Worker, offered: Offers
) -> None:
    supervise(specs(billing=1), offered)
    leases.claim(offered[0], worker)
    other = Worker("loops-2@here", uuid.uuid4())
    loops_worker.register(other, slots=4)
    loops_worker.mark_stopping(other)
    loops_worker.mark_stopping(worker)
    assert loops_worker.stop_what_nobody_takes(worker)
    assert leases.heartbeat(offered[0]) == DesiredState.STOP
    leases.end(offered[0], "its worker stopped")
    supervise(specs(billing=1), offered)
    assert len(offered) == 1


def test_an_instance_whose_lease_was_ended_by_others_is_to_stop(worker: Worker, offered: Offers) -> None:
    supervise(specs(billing=1), offered)
    leases.claim(offered[0], worker)
    assert leases.heartbeat(offered[0]) == DesiredState.RUN
    leases.end(offered[0], "silent for too long")
    assert leases.heartbeat(offered[0]) == DesiredState.STOP


def test_a_receiver_that_fails_stops_no_other(
    worker: Worker, offered: Offers, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(**_: object) -> None:
        raise ValueError("no paper left")

    supervise(specs(billing=1), offered)
    instance_ended.connect(broken)
    try:
        assert leases.end(offered[0], "withdrawn")
    finally:
        instance_ended.disconnect(broken)
    assert "no paper left" in caplog.text


def test_leases_and_workers_of_long_ago_are_deleted(worker: Worker, offered: Offers) -> None:
    supervise(specs(billing=2), offered)
    leases.end(offered[0], "withdrawn")
    leases.end(offered[1], "withdrawn")
    InstanceLease.objects.filter(id=offered[0]).update(ended_at=timezone.now() - timedelta(days=8))
    LoopsWorker.objects.update(heartbeat_at=timezone.now() - timedelta(days=2))
    prune()
    assert [lease.id for lease in InstanceLease.objects.all()] == [offered[1]]
    assert not LoopsWorker.objects.exists()


def test_supervision_finds_only_open_leases(worker: Worker, offered: Offers) -> None:
    supervise(specs(billing=1), offered)
    leases.end(offered[0], "it was asked to stop")
    supervise(specs(billing=1), offered)
    assert states() == [LeaseState.ENDED, LeaseState.PENDING]


def test_a_stopped_group_runs_none_and_its_number_again_when_it_is_started(worker: Worker, offered: Offers) -> None:
    supervise(specs(billing=2), offered)
    HostedGroup.objects.update(is_stopped=True)
    supervise(specs(billing=2), offered)
    assert states() == ["ended", "ended"]
    HostedGroup.objects.update(is_stopped=False)
    supervise(specs(billing=2), offered)
    assert states() == ["ended", "ended", "pending", "pending"]


def test_a_draining_worker_gets_no_instance(worker: Worker, offered: Offers) -> None:
    other = Worker("loops-2@here", uuid.uuid4())
    loops_worker.register(other, slots=4)
    LoopsWorker.objects.filter(node=WORKER.node).update(is_draining=True)
    supervise(specs(billing=2), offered)
    assert set(InstanceLease.objects.values_list("worker", flat=True)) == {other.node}
