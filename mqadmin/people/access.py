"""Who may what on which cluster: the one place that answers it, for the runner, pages, REST and sockets.

A role for all clusters is a membership in a group, which Django knows; a role for one cluster is a row, which
`ClusterRoleBackend` tells Django: `person.has_perm("mq_clusters.add_topic", cluster)`. What acts for a person within
narrower bounds (an API token, a scheduled job) has a `Scope`, which only ever takes away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, Permission, PermissionsMixin
from django.db.models import QuerySet

from mqadmin.clusters.models import Cluster
from mqadmin.people.models import ClusterRole, ReadOnlyCluster
from mqadmin.people.roles import LOWEST_ROLE, Role, grants, highest, permissions_of

Person = AbstractBaseUser | AnonymousUser

VIEW = "mq_clusters.view_cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Bounds within which something acts for a person: at most this role; only these clusters, None for all of theirs.

    With clusters named, nothing about the installation itself is within the bounds.
    """

    role: Role = Role.ADMIN
    clusters: frozenset[str] | None = None

    def allows(self, permission: str, cluster: Cluster | None) -> bool:
        """Returns whether the bounds leave room for it; the person must have the permission, too."""
        if not grants(self.role, permission):
            return False
        return self.clusters is None or (cluster is not None and cluster.name in self.clusters)


class ClusterRoleBackend(BaseBackend):
    """Adds the roles for single clusters to what Django's own backend knows. It logs nobody in."""

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        """Returns whether an active person has the permission on a cluster, by a role for all or for this one."""
        if not isinstance(obj, Cluster) or not user_obj.is_active or user_obj.is_anonymous:
            return False
        return user_obj.has_perm(perm) or grants(_roles(user_obj).get(obj.pk, ""), perm)


def may(person: Person, permission: str, cluster: Cluster | None, scope: Scope | None = None) -> bool:
    """Returns whether a person has a permission on a cluster; on the installation itself where it is None."""
    if scope is not None and not scope.allows(permission, cluster):
        return False
    if not isinstance(person, PermissionsMixin):
        return False
    return person.has_perm(permission) if cluster is None else person.has_perm(permission, cluster)


def visible_clusters(person: Person, scope: Scope | None = None) -> QuerySet[Cluster]:
    """Returns the clusters that a person may see."""
    clusters = Cluster.objects.all()
    if not isinstance(person, PermissionsMixin) or not person.is_active:
        return clusters.none()
    if not person.has_perm(VIEW):
        clusters = clusters.filter(pk__in=_roles(person))
    if scope is not None and scope.clusters is not None:
        clusters = clusters.filter(name__in=scope.clusters)
    return clusters


def clusters_where(person: Person, permission: str, scope: Scope | None = None) -> list[str] | None:
    """Returns the names of the clusters on which a person has a permission; None for all and the installation."""
    if may(person, permission, None, scope):
        return None
    return [one.name for one in visible_clusters(person, scope) if may(person, permission, one, scope)]


def may_anywhere(person: Person, permission: str) -> bool:
    """Returns whether a person has a permission on the installation or on any cluster."""
    if may(person, permission, None):
        return True
    return isinstance(person, PermissionsMixin) and any(grants(role, permission) for role in _roles(person).values())


def sees_all(person: Person, scope: Scope | None = None) -> bool:
    """Returns whether a person sees every cluster, whatever their names."""
    return may(person, VIEW, None, scope)


def is_read_only(cluster: Cluster) -> bool:
    """Returns whether nobody changes the cluster from here."""
    return ReadOnlyCluster.objects.filter(cluster=cluster).exists()


def role_on(person: Person, cluster: Cluster | None) -> Role | None:
    """Returns the highest role of a person on a cluster, or (None) on all clusters and the installation."""
    if not isinstance(person, PermissionsMixin) or not person.is_active:
        return None
    if person.is_superuser:
        return Role.ADMIN
    names = set(person.groups.filter(name__in=list(Role)).values_list("name", flat=True))
    if cluster is not None and (here := _roles(person).get(cluster.pk)):
        names.add(here)
    return highest(frozenset(Role(name) for name in names))


def sync_groups(**_: Any) -> None:
    """Makes the groups of the roles, with the permissions of the table; a `post_migrate` hook."""
    there = {
        f"{one.content_type.app_label}.{one.codename}": one
        for one in Permission.objects.select_related("content_type")
        if f"{one.content_type.app_label}.{one.codename}" in LOWEST_ROLE
    }
    for role in Role:
        group, _created = Group.objects.get_or_create(name=role.value)
        wanted = {there[name].pk for name in permissions_of(role) if name in there}
        if set(group.permissions.values_list("pk", flat=True)) != wanted:
            group.permissions.set(wanted)


def all_roles(person_pks: Sequence[Any]) -> dict[Any, list[ClusterRole]]:
    """Returns the roles for single clusters by person, in one query."""
    found: dict[Any, list[ClusterRole]] = {}
    rows = ClusterRole.objects.filter(person__in=person_pks).select_related("cluster").order_by("cluster__name")
    for row in rows:
        found.setdefault(row.person_id, []).append(row)
    return found


def _roles(person: Any) -> dict[int, str]:
    """Returns the person's roles by cluster, read once per object as Django's own permissions are."""
    if not hasattr(person, "_cluster_roles"):
        person._cluster_roles = dict(ClusterRole.objects.filter(person=person.pk).values_list("cluster", "role"))
    roles: dict[int, str] = person._cluster_roles
    return roles
