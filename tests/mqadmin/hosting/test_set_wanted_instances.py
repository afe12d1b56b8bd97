from __future__ import annotations

import pytest
from django.conf import settings as project
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, Permission

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


@pytest.fixture
def ann() -> AbstractUser:
    ann = get_user_model().objects.create_user("ann")
    ann.user_permissions.add(Permission.objects.get(codename="change_hostedgroup"))
    return ann


def set_wanted(person: AbstractUser, number: object, *, cluster: str = "local", group: str = "billing") -> Result:
    values = {"group": group, "wanted": number}
    result = runner.run(caller(person), "set_wanted_instances", cluster, values)
    assert isinstance(result, Result)
    return result


def wanted() -> int:
    return HostedGroup.objects.get(group="billing").wanted_instances


def test_number_is_set_and_the_audit_knows_before_and_after(cluster: Cluster, ann: AbstractUser) -> None:
    result = set_wanted(ann, 4)
    assert wanted() == 4
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.cluster, entry.subject, entry.outcome) == ("ann", "local", "billing", "done")
    assert (entry.before, entry.after) == ({"wanted_instances": 2}, {"wanted_instances": 4})
    assert entry.run == result.run_id


def test_it_is_taken_back_by_the_same_action_with_the_number_before(cluster: Cluster, ann: AbstractUser) -> None:
    result = set_wanted(ann, 4)
    assert result.undo == Undo("set_wanted_instances", {"group": "billing", "wanted": 2})
    runner.run(caller(ann), result.undo.action, "local", result.undo.arguments)
    assert wanted() == 2


def test_the_number_that_is_wanted_already_changes_nothing(cluster: Cluster, ann: AbstractUser) -> None:
    result = set_wanted(ann, 2)
    assert (result.outcome, [one.state for one in result.items], result.undo) == ("done", ["unchanged"], None)


def test_person_without_the_right_is_refused_and_the_audit_knows(cluster: Cluster) -> None:
    bob = get_user_model().objects.create_user("bob")
    result = set_wanted(bob, 4)
    assert result.refusal == Refusal.PERMISSION
    assert "administrator" in result.reason
    assert wanted() == 2
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.outcome, entry.arguments) == ("bob", "refused", {"group": "billing", "wanted": 4})
    assert entry.reason


@pytest.mark.parametrize(
    ("number", "words"), [(-1, "whole number"), (project.MQADMIN_INSTANCES + 1, "MQADMIN_INSTANCES")]
)
def test_number_that_cannot_run_is_refused(cluster: Cluster, ann: AbstractUser, number: int, words: str) -> None:
    result = set_wanted(ann, number)
    assert words in result.errors["wanted"][0]
    assert wanted() == 2


def test_group_that_runs_elsewhere_is_refused(cluster: Cluster, ann: AbstractUser) -> None:
    result = set_wanted(ann, 1, group="mail")
    assert result.refusal == Refusal.RULE
    assert "not hosted" in result.reason


def test_group_of_the_same_name_on_another_cluster_is_not_ours(cluster: Cluster, ann: AbstractUser) -> None:
    Cluster.objects.create(name="prod", namesrv="10.0.0.1:9876")
    assert "not hosted" in set_wanted(ann, 1, cluster="prod").reason
    assert wanted() == 2


def test_no_instance_at_all_is_warned_of(cluster: Cluster, ann: AbstractUser) -> None:
    shown = runner.preview(caller(ann), "set_wanted_instances", "local", {"group": "billing", "wanted": 0})
    assert len(shown.warnings) == 1
    assert wanted() == 2
