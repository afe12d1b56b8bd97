from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from consumer.hosting import loops_worker
from consumer.hosting.leases import Worker
from consumer.models import HostedGroup, InstanceLease, LeaseState, LoopsWorker
from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Result
from mqadmin.actions.declaration import Undo
from mqadmin.hosting.workers import WorkerState, workers
from tests.support.callers import caller

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def two_workers() -> None:
    group = HostedGroup.objects.create(group="billing", wanted_instances=3, declared_instances=3)
    for name, slots, held in (("loops-1@here", 4, 2), ("loops-2@here", 2, 1)):
        loops_worker.register(Worker(name, uuid.uuid4()), slots)
        for _ in range(held):
            InstanceLease.objects.create(group=group, worker=name, state=LeaseState.RUNNING)
    InstanceLease.objects.create(group=group, worker="loops-1@here", state=LeaseState.ENDED)


def drain(person: AbstractUser, draining: str = "yes", worker: str = "loops-1@here") -> Result:
    result = runner.run(caller(person), "set_worker_draining", "", {"worker": worker, "draining": draining})
    assert isinstance(result, Result)
    return result


def test_workers_are_listed_with_what_each_runs() -> None:
    LoopsWorker.objects.filter(node="loops-2@here").update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    listed = [(one.node, one.state, tuple(map(str, one.instances)), one.free) for one in workers()]
    assert listed == [
        ("loops-1@here", WorkerState.OK, ("billing", "billing"), 2),
        ("loops-2@here", WorkerState.SILENT, ("billing",), 1),
    ]


def test_a_worker_drains_and_is_used_again(ann: AbstractUser) -> None:
    result = drain(ann)
    assert workers()[0].state == WorkerState.DRAINING
    assert result.undo == Undo("set_worker_draining", {"worker": "loops-1@here", "draining": "no"})
    runner.run(caller(ann), result.undo.action, "", result.undo.arguments)
    assert workers()[0].state == WorkerState.OK


def test_one_that_is_started_anew_drains_no_more(ann: AbstractUser) -> None:
    drain(ann)
    loops_worker.register(Worker("loops-1@here", uuid.uuid4()), slots=4)
    assert workers()[0].state == WorkerState.OK


def test_instances_for_which_no_other_worker_has_a_slot_are_warned_of(ann: AbstractUser) -> None:
    def warnings(worker: str) -> list[str]:
        values = {"worker": worker, "draining": "yes"}
        return [str(one) for one in runner.preview(caller(ann), "set_worker_draining", "", values).warnings]

    (warning,) = warnings("loops-1@here")
    assert "for 1 of its instances" in warning
    assert warnings("loops-2@here") == []


def test_instances_that_end_anyway_need_no_slot_elsewhere(ann: AbstractUser) -> None:
    def count() -> int:
        values = {"worker": "loops-1@here", "draining": "yes"}
        return len(runner.preview(caller(ann), "set_worker_draining", "", values).warnings)

    assert count() == 1
    HostedGroup.objects.update(wanted_instances=2)
    assert count() == 0, "two are enough, and one runs elsewhere"
    HostedGroup.objects.update(wanted_instances=3, is_stopped=True)
    assert count() == 0, "none is wanted"
    HostedGroup.objects.update(is_stopped=False)
    first = InstanceLease.objects.filter(worker="loops-1@here", state=LeaseState.RUNNING)[:1]
    InstanceLease.objects.filter(pk__in=list(first.values_list("pk", flat=True))).update(state=LeaseState.STOPPING)
    assert count() == 0, "one is about to end"


def test_who_drains_already_is_not_warned_of_again(ann: AbstractUser) -> None:
    drain(ann)
    values = {"worker": "loops-1@here", "draining": "yes"}
    assert runner.preview(caller(ann), "set_worker_draining", "", values).warnings == ()


def test_an_unknown_worker_is_refused_at_the_field(ann: AbstractUser) -> None:
    assert drain(ann, worker="loops-9@here").errors["worker"] == ["There is no worker of this name."]
