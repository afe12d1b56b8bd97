"""The task that runs any action by its name: its contract, and what the audit says of it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.conf import settings as project

from consumer.models import HostedGroup
from mqadmin.action_runs import runs
from mqadmin.audit.models import AuditEntry
from mqadmin.celery import app
from mqadmin.clusters.models import Cluster
from mqadmin.jobs import tasks
from mqadmin.people.models import ReadOnlyCluster
from mqadmin.people.roles import Role
from tests.support.people import make_person

pytestmark = pytest.mark.django_db

WANTED = {"action": "set_wanted_instances", "cluster": "local", "arguments": {"group": "billing", "wanted": 4}}


@pytest.fixture(autouse=True)
def cluster() -> Cluster:
    HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)
    return Cluster.objects.create(name="local", namesrv=project.MQADMIN_NAMESRV)


@pytest.fixture(autouse=True)
def nightly() -> Any:
    return make_person("nightly", Role.OPERATOR)


def run(task_id: str = "", **kwargs: Any) -> AuditEntry:
    """Runs the task as a worker does, and returns the newest entry."""
    ended = tasks.run_action.apply(kwargs={"identity": "nightly", **kwargs}, task_id=task_id or str(uuid.uuid4()))
    assert ended.successful(), ended.result
    newest = AuditEntry.objects.order_by("-number").first()
    assert newest is not None
    return newest


def wanted() -> int:
    return HostedGroup.objects.get().wanted_instances


def test_its_name_is_a_contract() -> None:
    assert app.tasks["mqadmin.run_action"].name == tasks.NAME


def test_it_runs_an_action_for_an_account_and_the_audit_says_through_what() -> None:
    entry = run(**WANTED, job="more at night")
    assert wanted() == 4
    assert (entry.actor, entry.way, entry.via, entry.outcome) == ("nightly", "celery", "more at night", "done")
    found = runs.find(entry.run)
    assert isinstance(found, runs.Result)


@pytest.mark.parametrize("how", [{"key": "once"}, {"task_id": "5b1c"}])
def test_twice_under_one_key_or_one_task_it_is_carried_out_once(how: dict[str, str]) -> None:
    run(**WANTED, **how)
    HostedGroup.objects.update(wanted_instances=7)
    run(**WANTED, **how)
    assert wanted() == 7
    assert AuditEntry.objects.count() == 1


def test_another_task_is_another_run() -> None:
    run(**WANTED)
    HostedGroup.objects.update(wanted_instances=7)
    run(**WANTED)
    assert wanted() == 4


@pytest.mark.parametrize(
    ("bounds", "outcome"),
    [
        ({"role": "viewer"}, "refused"),
        ({"clusters": ["elsewhere"]}, "refused"),
        ({"clusters": []}, "refused"),
        ({"role": "operator", "clusters": ["local"]}, "done"),
    ],
)
def test_bounds_only_take_away(bounds: dict[str, Any], outcome: str) -> None:
    assert run(**WANTED, **bounds).outcome == outcome


@pytest.mark.parametrize(
    "wrong",
    [
        {"identity": "nobody"},
        {"action": "demolish"},
        {"cluster": "elsewhere"},
        {"cluster": ""},
        {"arguments": {"group": "billing", "wanted": "many"}},
        {"arguments": {}},
    ],
)
def test_what_is_not_there_or_not_valid_is_a_refusal_in_the_audit(wrong: dict[str, Any]) -> None:
    entry = run(**{**WANTED, **wrong})
    assert (entry.outcome, wanted()) == ("refused", 2)
    assert entry.reason
    assert entry.actor == wrong.get("identity", "nightly")


def test_a_deactivated_account_and_a_read_only_cluster_refuse(cluster: Cluster, nightly: Any) -> None:
    ReadOnlyCluster.objects.create(cluster=cluster)
    assert "read-only" in run(**WANTED).reason
    nightly.is_active = False
    nightly.save()
    assert "lacks the right" in run(**WANTED).reason
