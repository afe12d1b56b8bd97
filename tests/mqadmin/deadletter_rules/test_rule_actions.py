"""Rules are made paused, let run, paused and deleted; what cannot be is refused by argument."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser, Group

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.clusters.models import Cluster
from mqadmin.deadletter_rules import make_rule as make_rule_module
from mqadmin.deadletter_rules.models import DeadLetterRule
from mqadmin.deadletters.models import Failure
from mqadmin.people.roles import Role
from tests.mqadmin.deadletter_rules.conftest import die
from tests.support.callers import caller

pytestmark = pytest.mark.django_db(transaction=True)


def run(person: Any, action: str, **values: Any) -> Result:
    result = runner.run(caller(person), action, "prod", {"rule": "nightly", **values})
    assert isinstance(result, Result)
    return result


def make(person: Any, **values: Any) -> Result:
    return run(person, "make_rule", **{"group": "billing", "does": "replay", **values})


def test_a_rule_is_made_paused_and_its_undo_deletes_it(prod: Cluster, ann: AbstractUser) -> None:
    made = make(ann)
    assert made.outcome == "done"
    row = DeadLetterRule.objects.get()
    assert (row.is_running, row.acts_for, row.times_max) == (False, "ann", 1)
    assert made.undo is not None
    runner.run(caller(ann), made.undo.action, "prod", made.undo.arguments)
    assert not DeadLetterRule.objects.exists()


def test_a_rule_about_a_failure_keeps_its_identity(prod: Cluster, now: Any, ann: AbstractUser) -> None:
    die(prod, 0, now)
    failure = Failure.objects.get()
    make(ann, failure=failure.pk)
    assert DeadLetterRule.objects.get().identity == failure.identity


def test_letting_it_run_says_what_it_will_do_and_is_taken_back(prod: Cluster, ann: AbstractUser) -> None:
    make(ann)
    found = runner.preview(caller(ann), "set_rule_running", "prod", {"rule": "nightly", "running": "yes"})
    assert len(found.warnings) == 2
    result = run(ann, "set_rule_running", running="yes")
    assert DeadLetterRule.objects.get().is_running
    assert result.undo is not None
    assert result.undo.arguments == {"rule": "nightly", "running": "no"}
    assert run(ann, "set_rule_running", running="yes").items[0].state == "unchanged"


@pytest.mark.parametrize(
    ("values", "argument"),
    [
        ({"rule": "a/b"}, "rule"),
        ({"group": "no group!"}, "group"),
        ({"does": "explode"}, "does"),
        ({"times": 0}, "times"),
        ({"rate": 0}, "rate"),
        ({"from_hour": 24}, "from_hour"),
        ({"after_minutes": 10_081}, "after_minutes"),
    ],
)
def test_what_no_rule_can_be_is_refused_by_argument(
    prod: Cluster, ann: AbstractUser, values: dict[str, Any], argument: str
) -> None:
    result = make(ann, **values)
    assert (result.refusal, list(result.errors)) == (Refusal.ARGUMENTS, [argument])


def test_a_failure_of_another_group_is_refused(prod: Cluster, now: Any, ann: AbstractUser) -> None:
    die(prod, 0, now)
    result = make(ann, group="mail", failure=Failure.objects.get().pk)
    assert list(result.errors) == ["failure"]


def test_a_second_rule_of_the_name_and_one_too_many_are_refused(
    prod: Cluster, ann: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(ann)
    assert "of this name already" in make(ann).reason
    monkeypatch.setattr(make_rule_module, "RULES_MAX", 1)
    assert "may have 1 rules" in make(ann, rule="other").reason


@pytest.mark.parametrize("action", ["set_rule_running", "delete_rule"])
def test_a_rule_that_is_not_there_is_refused(prod: Cluster, ann: AbstractUser, action: str) -> None:
    values = {"running": "yes"} if action == "set_rule_running" else {}
    assert run(ann, action, **values).reason == "There is no rule of this name."


def test_operators_make_rules_and_viewers_do_not(prod: Cluster, django_user_model: type[AbstractUser]) -> None:
    for role, is_allowed in ((Role.OPERATOR, True), (Role.VIEWER, False)):
        person = django_user_model.objects.create_user(role)
        person.groups.add(Group.objects.get_or_create(name=role)[0])
        assert runner.may(caller(person), "make_rule", "prod") is is_allowed
