"""People with roles, as an administrator of the console makes them."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, Group

from mqadmin.clusters.models import Cluster
from mqadmin.people.models import ClusterRole
from mqadmin.people.roles import Role


def make_person(
    name: str, role: Role | None = None, on: Cluster | None = None, password: str | None = None
) -> AbstractUser:
    """Makes an account with a role on all clusters, or on one."""
    person = get_user_model().objects.create_user(name, password=password)
    if role is not None and on is not None:
        ClusterRole.objects.create(person=person, cluster=on, role=role)
    elif role is not None:
        person.groups.add(Group.objects.get(name=role))
    return person
