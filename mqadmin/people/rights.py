"""What people may, as a value that can be compared: people of the same rights are shown the same.

Rights are made of all that `access` reads of a person: the account's own marks, its groups and permissions, its
roles for single clusters, and what the groups may. Whatever else decides what a page shows belongs to the address.
Which clusters that lets a person see is told with them, as `access.visible_clusters` has it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Model, QuerySet

from mqadmin.people.access import VIEW
from mqadmin.people.models import ClusterRole

_PERMISSION = ("permission", "permission__content_type__app_label", "permission__codename")
_VIEW = tuple(VIEW.split("."))


@dataclass(frozen=True, slots=True)
class Rights:
    """`digest` is equal for people who may the same. `cluster_ids`: of the clusters that they see; None: all."""

    digest: str
    cluster_ids: frozenset[int] | None

    def sees(self, cluster_ids: frozenset[int]) -> bool:
        return self.cluster_ids is None or cluster_ids <= self.cluster_ids


def rights_of(person_pks: Collection[Any]) -> dict[Any, Rights]:
    """Returns the rights of each active account, in five queries; others are left out.

    The caller asks for no more people than a query takes parameters.
    """
    people: type[Any] = get_user_model()
    marks = people._default_manager.filter(pk__in=person_pks, is_active=True).values_list("pk", "is_superuser")
    groups = _by_person(_rows(people.groups.through).filter(user__in=person_pks).values_list("user", "group"))
    own = _by_person(
        _rows(people.user_permissions.through).filter(user__in=person_pks).values_list("user", *_PERMISSION)
    )
    roles = _by_person(ClusterRole.objects.filter(person__in=person_pks).values_list("person", "cluster", "role"))
    of_groups = sorted(_rows(Group.permissions.through).values_list("group", *_PERMISSION))
    seeing_groups = {(group,) for group, _permission, *name in of_groups if tuple(name) == _VIEW}
    found = {}
    for pk, is_superuser in marks.iterator():
        sees_all = (
            is_superuser
            or not seeing_groups.isdisjoint(groups[pk])
            or any(tuple(name) == _VIEW for _permission, *name in own[pk])
        )
        found[pk] = Rights(
            digest=_digest([is_superuser, groups[pk], own[pk], roles[pk], of_groups]),
            cluster_ids=None if sees_all else frozenset(cluster for cluster, _role in roles[pk]),
        )
    return found


def _rows(model: type[Model]) -> QuerySet[Any]:
    return model._default_manager.all()


def _by_person(rows: QuerySet[Any, tuple[Any, ...]]) -> defaultdict[Any, list[tuple[Any, ...]]]:
    found: defaultdict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for person, *values in rows:
        found[person].append(tuple(values))
    for of_person in found.values():
        of_person.sort()
    return found


def _digest(facts: list[Any]) -> str:
    return sha256(json.dumps(facts).encode()).hexdigest()
