"""Accounts made, given roles, deactivated; log-ins ended."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import AbstractUser
from django.test import Client

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.people import access, persons, tasks
from mqadmin.people.models import LogIn
from mqadmin.people.roles import Role
from tests.support.callers import caller
from tests.support.people import make_person

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(django_user_model: type[AbstractUser]) -> AbstractUser:
    return django_user_model.objects.create_superuser("root")


def run(asking: Any, action: str, /, **values: Any) -> Result:
    result = runner.run(caller(asking), action, "", values)
    assert isinstance(result, Result)
    return result


def role_of(name: str) -> Role | None:
    return access.role_on(persons.accounts().get(username=name), None)


def test_a_person_is_added_with_a_password_that_is_shown_once(root: AbstractUser) -> None:
    result = run(root, "add_person", person="ann", role="operator")
    assert result.outcome == "done"
    assert authenticate(username="ann", password=result.items[0].secret) is not None
    assert role_of("ann") is Role.OPERATOR
    assert result.items[0].secret not in str(list(AuditEntry.objects.values()))
    assert run(root, "add_person", person="ann").refusal == Refusal.ARGUMENTS
    assert run(root, "add_person", person="a/b c").refusal == Refusal.ARGUMENTS


def test_who_is_added_by_mistake_is_deactivated_by_undo(root: AbstractUser) -> None:
    undo = run(root, "add_person", person="ann").undo
    assert undo is not None
    assert run(root, undo.action, **undo.arguments).outcome == "done"
    assert not persons.accounts().get(username="ann").is_active


def test_a_role_is_given_changed_and_taken_back(root: AbstractUser) -> None:
    make_person("ann", Role.VIEWER)
    changed = run(root, "give_role", person="ann", role="operator")
    assert role_of("ann") is Role.OPERATOR
    assert (changed.items[0].before, changed.items[0].after) == ({"role": "viewer"}, {"role": "operator"})
    assert changed.undo is not None
    run(root, changed.undo.action, **changed.undo.arguments)
    assert role_of("ann") is Role.VIEWER
    run(root, "give_role", person="ann", role="")
    assert role_of("ann") is None


def test_a_role_is_given_for_some_clusters(root: AbstractUser) -> None:
    prod, test = (Cluster.objects.create(name=name, namesrv="127.0.0.1:1") for name in ("prod", "test"))
    make_person("ann")
    result = run(root, "give_role", person="ann", role="operator", clusters=["test"])
    assert [(one.item, one.before) for one in result.items] == [("test", {})]
    ann = persons.accounts().get(username="ann")
    assert (access.role_on(ann, test), access.role_on(ann, prod), role_of("ann")) == (Role.OPERATOR, None, None)
    assert run(root, "give_role", person="ann", role="operator", clusters=["elsewhere"]).refusal == Refusal.ARGUMENTS


def test_there_is_always_an_administrator() -> None:
    ann, bob = make_person("ann", Role.ADMIN), make_person("bob", Role.VIEWER)
    assert run(ann, "give_role", person="ann", role="viewer").refusal == Refusal.RULE
    assert run(ann, "set_person_active", person="ann", active="no").refusal == Refusal.RULE
    run(ann, "give_role", person="bob", role="admin")
    assert run(ann, "give_role", person="ann", role="viewer").outcome == "done"
    assert role_of("bob") is Role.ADMIN
    assert bob.pk is not None


def test_a_superuser_has_no_role_to_change(root: AbstractUser) -> None:
    assert run(root, "give_role", person="root", role="viewer").refusal == Refusal.RULE


@pytest.mark.parametrize("action", ["give_role", "set_person_active", "end_log_ins", "new_password"])
def test_nobody_of_that_name_is_said(root: AbstractUser, action: str) -> None:
    values = {"set_person_active": {"active": "no"}}.get(action, {})
    assert set(run(root, action, person="nobody", **values).errors) == {"person"}


def logged_in(name: str) -> Client:
    client = Client(headers={"user-agent": "Firefox"})
    client.force_login(persons.accounts().get(username=name))
    return client


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_log_ins_are_noted_and_ended(root: AbstractUser) -> None:
    make_person("ann", Role.VIEWER)
    first, second = logged_in("ann"), logged_in("ann")
    one, _other = LogIn.objects.order_by("pk")
    assert one.person.get_username() == "ann"
    result = run(root, "end_log_ins", person="ann", log_in=str(one.pk))
    assert [item.item for item in result.items] == [str(one.pk)]
    assert (is_in(first), is_in(second)) == (False, True)
    assert run(root, "end_log_ins", person="ann", log_in=str(one.pk)).refusal == Refusal.ARGUMENTS
    run(root, "end_log_ins", person="ann")
    assert not is_in(second)


def test_log_ins_that_ended_by_themselves_are_forgotten(root: AbstractUser) -> None:
    make_person("ann", Role.VIEWER)
    client, _other = logged_in("ann"), logged_in("ann")
    client.logout()
    assert LogIn.objects.count() == 2
    tasks.forget_ended_log_ins()
    assert LogIn.objects.count() == 1


def test_a_deactivated_account_is_logged_out_everywhere(root: AbstractUser) -> None:
    make_person("ann", Role.ADMIN)
    client = logged_in("ann")
    run(root, "set_person_active", person="ann", active="no")
    assert not is_in(client)
    assert not LogIn.objects.exists()
    run(root, "set_person_active", person="ann", active="yes")
    assert is_in(logged_in("ann"))


def test_a_new_password_is_shown_once_and_ends_the_old_one_with_all_log_ins(root: AbstractUser) -> None:
    make_person("ann", Role.OPERATOR, password="the old one")
    client = logged_in("ann")
    result = run(root, "new_password", person="ann")
    (item,) = result.items
    assert (result.outcome, result.undo) == ("done", None)
    assert authenticate(username="ann", password=item.secret) is not None
    assert authenticate(username="ann", password="the old one") is None
    assert not is_in(client)
    assert item.secret not in str(list(AuditEntry.objects.values()))


def test_no_password_is_made_for_a_superuser_nor_where_single_sign_on_lets_in(root: AbstractUser) -> None:
    persons.accounts().create_superuser("chief", password="untouched")
    sso = make_person("sso", Role.VIEWER)
    sso.set_unusable_password()
    sso.save()
    for name, reason in (("chief", "changepassword chief"), ("sso", "single sign-on")):
        refused = run(root, "new_password", person=name)
        assert refused.refusal == Refusal.RULE
        assert reason in refused.reason
    assert authenticate(username="chief", password="untouched") is not None
