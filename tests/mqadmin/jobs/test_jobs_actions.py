"""Jobs are made, listed, paused and deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings as project
from django.contrib.auth.models import AbstractUser
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from consumer.models import HostedGroup
from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.jobs import selectors, tasks
from mqadmin.people.roles import Role
from tests.support.callers import caller
from tests.support.people import make_person

pytestmark = pytest.mark.django_db

JOB = {
    "job": "more at night",
    "action": "set_wanted_instances",
    "cluster": "local",
    "schedule": "0 3 * * 1-5",
    "identity": "nightly",
    "arguments": '{"group": "billing", "wanted": 4}',
}


@pytest.fixture(autouse=True)
def cluster() -> Cluster:
    HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)
    make_person("nightly", Role.OPERATOR)
    return Cluster.objects.create(name="local", namesrv=project.MQADMIN_NAMESRV)


@pytest.fixture
def root(django_user_model: type[AbstractUser]) -> AbstractUser:
    return django_user_model.objects.create_superuser("root")


def run(person: Any, verb: str, /, **values: Any) -> Result:
    result = runner.run(caller(person), verb, "", values, confirmation=values["job"])
    assert isinstance(result, Result)
    return result


def test_a_job_is_a_row_of_beat_that_carries_the_contract(root: AbstractUser) -> None:
    assert run(root, "make_job", **JOB).outcome == "done"
    row = PeriodicTask.objects.get(name="more at night")
    assert (row.task, row.queue, row.enabled) == (tasks.NAME, "jobs", True)
    tasks.run_action.apply(kwargs=json.loads(row.kwargs))
    assert HostedGroup.objects.get().wanted_instances == 4
    (job,) = selectors.jobs()
    assert (job.name, job.action, job.cluster, job.identity) == (
        "more at night",
        "set_wanted_instances",
        "local",
        "nightly",
    )
    assert job.schedule == "0 3 * * 1-5"
    assert job.last is not None
    assert job.last.outcome == "done"
    assert job.next_at is not None
    assert (job.next_at > timezone.now(), job.next_at.hour) == (True, 3)


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"schedule": "every night"}, "schedule"),
        ({"schedule": "99 3 * * *"}, "schedule"),
        ({"action": "demolish"}, "action"),
        ({"cluster": ""}, "cluster"),
        ({"cluster": "elsewhere"}, "cluster"),
        ({"identity": "nobody"}, "identity"),
        ({"action": "set_alert_channel", "cluster": ""}, "action"),
        ({"arguments": "{"}, "arguments"),
        ({"arguments": "[]"}, "arguments"),
        ({"arguments": '{"group": "billing", "wanted": "many"}'}, "arguments"),
    ],
)
def test_what_could_never_run_is_refused_at_its_argument(
    root: AbstractUser, wrong: dict[str, str], argument: str
) -> None:
    result = run(root, "make_job", **{**JOB, **wrong})
    assert (result.refusal, set(result.errors)) == (Refusal.ARGUMENTS, {argument})
    assert selectors.jobs() == []


def test_a_name_is_taken_once(root: AbstractUser) -> None:
    run(root, "make_job", **JOB)
    assert set(run(root, "make_job", **JOB).errors) == {"job"}


def test_the_preview_says_when_the_account_may_not(root: AbstractUser) -> None:
    make_person("weak", Role.VIEWER)
    shown = runner.preview(caller(root), "make_job", "", {**JOB, "identity": "weak"})
    assert "may not do this now" in shown.warnings[0]


def test_a_job_is_paused_goes_on_and_is_deleted(root: AbstractUser) -> None:
    made = run(root, "make_job", **JOB)
    paused = run(root, "set_job_running", job="more at night", running="no")
    assert selectors.jobs()[0].next_at is None
    assert paused.undo is not None
    run(root, paused.undo.action, **paused.undo.arguments)
    assert selectors.jobs()[0].next_at is not None
    assert made.undo is not None
    assert run(root, made.undo.action, **made.undo.arguments).outcome == "done"
    assert selectors.jobs() == []
    assert set(run(root, "delete_job", job="more at night").errors) == {"job"}


def test_other_rows_of_beat_are_no_jobs_and_are_not_touched(root: AbstractUser) -> None:
    other = PeriodicTask.objects.exclude(task=tasks.NAME).first()
    assert other is not None
    assert selectors.jobs() == []
    assert set(run(root, "delete_job", job=other.name).errors) == {"job"}


def test_a_job_that_would_set_a_password_is_refused_and_the_audit_does_not_keep_it(root: AbstractUser) -> None:
    settings = json.dumps({"broker": "broker-a", "settings": "aclPassword=hunter2"})
    result = run(root, "make_job", **JOB | {"action": "change_broker_config", "arguments": settings})
    assert (result.refusal, list(result.errors)) == (Refusal.ARGUMENTS, ["arguments"])
    tasks.run_action.apply(
        kwargs={
            "action": "change_broker_config",
            "identity": "nightly",
            "cluster": "gone",
            "arguments": {"a": settings},
        }
    )
    assert "hunter2" not in str(list(AuditEntry.objects.values()))
    assert AuditEntry.objects.count() == 2
