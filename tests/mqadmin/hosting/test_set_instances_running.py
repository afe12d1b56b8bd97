from __future__ import annotations

import pytest
from django.conf import settings as project
from django.contrib.auth.models import AbstractUser

from consumer.models import HostedGroup
from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions.declaration import Undo
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from tests.support.callers import caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)
    return Cluster.objects.create(name="local", namesrv=project.MQADMIN_NAMESRV)


def set_running(person: AbstractUser, running: str, *, group: str = "billing") -> Result:
    result = runner.run(caller(person), "set_instances_running", "local", {"group": group, "running": running})
    assert isinstance(result, Result)
    return result


def test_a_stopped_group_keeps_its_number_and_is_started_again(cluster: Cluster, ann: AbstractUser) -> None:
    result = set_running(ann, "no")
    row = HostedGroup.objects.get()
    assert (row.is_stopped, row.wanted_instances) == (True, 2)
    entry = AuditEntry.objects.get()
    assert (entry.subject, entry.before, entry.after) == (
        "billing",
        {"instances_run": "yes"},
        {"instances_run": "no"},
    )
    assert result.undo == Undo("set_instances_running", {"group": "billing", "running": "yes"})
    runner.run(caller(ann), result.undo.action, "local", result.undo.arguments)
    assert not HostedGroup.objects.get().is_stopped


def test_what_is_so_already_changes_nothing(cluster: Cluster, ann: AbstractUser) -> None:
    result = set_running(ann, "yes")
    assert ([one.state for one in result.items], result.undo) == (["unchanged"], None)


def test_group_that_runs_elsewhere_is_refused(cluster: Cluster, ann: AbstractUser) -> None:
    result = set_running(ann, "no", group="mail")
    assert result.refusal == Refusal.RULE
    assert "not hosted" in result.reason


def test_a_number_set_meanwhile_is_said_to_wait(cluster: Cluster, ann: AbstractUser) -> None:
    set_running(ann, "no")
    shown = runner.preview(caller(ann), "set_wanted_instances", "local", {"group": "billing", "wanted": 3})
    assert any("stopped" in warning for warning in shown.warnings)
