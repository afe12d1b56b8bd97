"""What people may, as a value that can be compared: people of one standing are shown the same.

A standing is made of all that `access` reads of a person: the account's own marks, its groups and permissions, its
roles for single clusters, and what the groups may. Whatever else decides what a page shows belongs to the address.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection
from hashlib import sha256
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Model, QuerySet

from mqadmin.people.models import ClusterRole


def standings(person_pks: Collection[Any]) -> dict[Any, str]:
    """Returns the standing of each active account, in five queries; others are left out.

    The caller asks for no more people than a query takes parameters.
    """
    people: type[Any] = get_user_model()
    marks = people._default_manager.filter(pk__in=person_pks, is_active=True).values_list("pk", "is_superuser")
    groups = _by_person(_rows(people.groups.through).filter(user__in=person_pks).values_list("user", "group"))
    own = _by_person(
        _rows(people.user_permissions.through).filter(user__in=person_pks).values_list("user", "permission")
    )
    roles = _by_person(ClusterRole.objects.filter(person__in=person_pks).values_list("person", "cluster", "role"))
    of_groups = sorted(_rows(Group.permissions.through).values_list("group", "permission"))
    return {
        pk: _digest([is_superuser, groups[pk], own[pk], roles[pk], of_groups]) for pk, is_superuser in marks.iterator()
    }


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
