from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission

from mqadmin.actions import registry
from mqadmin.people.roles import LOWEST_ROLE, Role, grants, highest, permissions_of


def test_each_role_includes_the_one_before() -> None:
    assert permissions_of(Role.VIEWER) < permissions_of(Role.OPERATOR) < permissions_of(Role.ADMIN)


@pytest.mark.parametrize(
    ("role", "permission", "has"),
    [
        ("viewer", "mq_clusters.view_cluster", True),
        ("viewer", "mq_clusters.add_topic", False),
        ("operator", "mq_clusters.add_topic", True),
        ("operator", "mq_clusters.delete_topic", False),
        ("admin", "mq_clusters.delete_topic", True),
        ("admin", "auth.nothing_of_ours", False),
        ("", "mq_clusters.view_cluster", False),
        ("root", "mq_clusters.view_cluster", False),
    ],
)
def test_a_role_has_what_its_row_says(role: str, permission: str, has: bool) -> None:
    assert grants(role, permission) is has


def test_the_highest_of_several_roles_counts() -> None:
    assert highest(frozenset({Role.VIEWER, Role.ADMIN})) is Role.ADMIN
    assert highest(frozenset()) is None


def test_every_actions_permission_is_in_the_table() -> None:
    assert {action.permission for action in registry.ACTIONS.values()} <= set(LOWEST_ROLE)


@pytest.mark.django_db
@pytest.mark.parametrize("role", list(Role))
def test_djangos_group_of_a_role_has_its_permissions(role: Role) -> None:
    there = {f"{app}.{code}" for app, code in Permission.objects.values_list("content_type__app_label", "codename")}
    group = Group.objects.get(name=role)
    has = {f"{one.content_type.app_label}.{one.codename}" for one in group.permissions.select_related("content_type")}
    assert has == permissions_of(role) & there
