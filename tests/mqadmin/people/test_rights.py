"""Rights: equal for people who may the same, and another one with everything that `access` reads."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mqadmin.people import access
from mqadmin.people.models import ClusterRole
from mqadmin.people.rights import Rights, rights_of
from mqadmin.people.roles import Role
from tests.support import console_rows
from tests.support.people import make_person

pytestmark = pytest.mark.django_db


@pytest.fixture
def both() -> tuple[Any, Any]:
    """Two operators of everything."""
    return make_person("ann", Role.OPERATOR), make_person("bob", Role.OPERATOR)


def of(*people: Any) -> list[Rights | None]:
    found = rights_of([person.pk for person in people])
    return [found.get(person.pk) for person in people]


def test_people_of_the_same_roles_have_the_same_rights(both: tuple[Any, Any]) -> None:
    first, second = of(*both)
    assert first == second


@pytest.mark.parametrize("role", [None, Role.VIEWER])
@pytest.mark.parametrize("where", [None, "local"])
@pytest.mark.parametrize("is_own", [False, True], ids=["", "own permission"])
@pytest.mark.parametrize("is_superuser", [False, True], ids=["", "superuser"])
def test_clusters_seen_are_those_that_access_lets_a_person_see(
    role: Role | None, where: str | None, is_own: bool, is_superuser: bool
) -> None:
    clusters = {name: console_rows.make_cluster(name, now=timezone.now()) for name in ("local", "other")}
    person = make_person("ann", role, clusters[where] if where else None)
    if is_own:
        person.user_permissions.add(Permission.objects.get(codename="view_cluster"))
    type(person).objects.filter(pk=person.pk).update(is_superuser=is_superuser)
    (found,) = of(person)
    seen = set(access.visible_clusters(type(person).objects.get(pk=person.pk)))
    assert found is not None
    assert {one for one in clusters.values() if found.sees(frozenset([one.pk]))} == seen


def role_on_a_cluster(person: Any) -> None:
    cluster = console_rows.make_cluster("local", now=timezone.now())
    ClusterRole.objects.create(person=person, cluster=cluster, role=Role.ADMIN)


def another_role(person: Any) -> None:
    person.groups.set([Group.objects.get(name=Role.VIEWER)])


def own_permission(person: Any) -> None:
    person.user_permissions.add(Permission.objects.get(codename="delete_topic"))


def superuser(person: Any) -> None:
    type(person).objects.filter(pk=person.pk).update(is_superuser=True)


@pytest.mark.parametrize("happens", [role_on_a_cluster, another_role, own_permission, superuser])
def test_whatever_somebody_may_more_or_less_makes_other_rights(both: tuple[Any, Any], happens: Any) -> None:
    before = of(both[0])
    happens(both[0])
    first, second = of(*both)
    assert first != second
    assert [second] == before


def test_what_a_role_may_is_part_of_it(both: tuple[Any, Any]) -> None:
    before = of(*both)
    Group.objects.get(name=Role.OPERATOR).permissions.clear()
    assert not set(before) & set(of(*both))


def test_who_is_deactivated_has_none(both: tuple[Any, Any]) -> None:
    type(both[0]).objects.filter(pk=both[0].pk).update(is_active=False)
    assert of(*both)[0] is None


def test_many_people_are_asked_for_at_once() -> None:
    people = [make_person(f"person {number}", Role.VIEWER) for number in range(20)]
    with CaptureQueriesContext(connection) as asked:
        assert len(rights_of([person.pk for person in people])) == 20
    assert len(asked) == 5
