"""Role × action × cluster, whole, generated from the declarations: nobody gets what their row does not say.

The test of the page asks with GET, which shows a form or says no; that of the runner runs with an argument that no
action takes, so that whoever may is refused for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.test import Client
from django.utils import timezone

from mqadmin.actions import registry, runner
from mqadmin.actions.declaration import Action, AnyAction
from mqadmin.actions.runs import Refusal, Result
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.console.action_pages import PAGES
from mqadmin.people.models import ReadOnlyCluster
from mqadmin.people.roles import LOWEST_ROLE, Role
from tests.support import console_rows
from tests.support.callers import caller
from tests.support.people import make_person

pytestmark = pytest.mark.django_db

# Who asks: nobody; without a role; a role on all clusters; a role on `mine` alone; a shut account; a superuser.
PEOPLE = (
    "nobody",
    "no role",
    "viewer",
    "operator",
    "admin",
    "viewer of mine",
    "operator of mine",
    "admin of mine",
    "shut admin",
    "superuser",
)
PLACES = ("mine", "other", "read-only")
_RANKS = {"viewer": 0, "operator": 1, "admin": 2}


@pytest.fixture
def places(now: Any) -> dict[str, Cluster]:
    found = {name: console_rows.make_cluster(name, now=now) for name in PLACES}
    for cluster in found.values():
        console_rows.make_topic(cluster, "orders", now=now)
        console_rows.make_group(cluster, "billing", now=now)
    ReadOnlyCluster.objects.create(cluster=found["read-only"])
    return found


@pytest.fixture
def now() -> Any:
    return timezone.now()


def person(who: str, places: dict[str, Cluster], accounts: type[AbstractUser]) -> Any:
    if who == "nobody":
        return AnonymousUser()
    if who == "superuser":
        return accounts.objects.create_superuser("root")
    if who == "no role":
        return make_person("ann")
    role = next(role for role in Role if role in who)
    made = make_person("ann", role, places["mine"] if "of mine" in who else None)
    if who == "shut admin":
        made.is_active = False
        made.save()
    return made


def has_right(who: str, permission: str, place: str) -> bool:
    """The rule, said independently: the permission's lowest role, on the clusters that the person has a role on."""
    if who in ("nobody", "no role", "shut admin"):
        return False
    if who == "superuser":
        return True
    role, _, only = who.partition(" of ")
    if only and place != only:
        return False
    return _RANKS[role] >= _RANKS[LOWEST_ROLE[permission]]


def is_for_oneself(who: str, action: AnyAction) -> bool:
    """Whether somebody may at least do it to their own account; the run of this test names no account."""
    return bool(action.own_argument) and who not in ("nobody", "shut admin")


def cells() -> Iterator[tuple[str, str, str]]:
    """Every action at every place: a cluster, or "" for those about the installation."""
    for name, action in registry.ACTIONS.items():
        for place in PLACES if isinstance(action, Action) else ("",):
            for who in PEOPLE:
                yield who, name, place


@pytest.mark.parametrize(("who", "name", "place"), list(cells()))
def test_a_run_is_refused_unless_the_row_says_otherwise(
    places: dict[str, Cluster], django_user_model: Any, who: str, name: str, place: str
) -> None:
    action = registry.ACTIONS[name]
    asking = caller(person(who, places, django_user_model))
    result = runner.run(asking, name, place, {"no such argument": "x"})
    assert isinstance(result, Result)
    wanted = Refusal.PERMISSION
    if has_right(who, action.permission, place):
        wanted = Refusal.READ_ONLY if place == "read-only" else Refusal.ARGUMENTS
    assert result.refusal == wanted
    assert runner.may(asking, name, place) is (wanted != Refusal.PERMISSION or is_for_oneself(who, action))
    assert AuditEntry.objects.get().outcome == "refused"


@pytest.mark.parametrize("who", PEOPLE)
def test_a_page_is_refused_unless_the_row_says_otherwise(
    places: dict[str, Cluster], django_user_model: Any, who: str
) -> None:
    asked = person(who, places, django_user_model)
    client = Client()
    if who not in ("nobody", "shut admin"):
        client.force_login(asked)
    make_person("bob")
    subjects = {"topic": "orders", "group": "billing", "person": "bob", "cluster": "mine", "job": "nightly"}
    wrong = []
    for name, page in PAGES.items():
        action = registry.ACTIONS[name]
        for place in PLACES if page.has_cluster else ("",):
            answer = client.get(page.address(place, subjects.get(action.subject, "x"))).status_code
            may_see = place == "" or has_right(who, "mq_clusters.view_cluster", place)
            if who in ("nobody", "shut admin"):
                wanted = 302
            elif not may_see:
                wanted = 404
            else:
                is_shown = has_right(who, action.permission, place) or is_for_oneself(who, action)
                wanted = 200 if is_shown else 403
            if answer != wanted:
                wrong.append((name, place, answer, wanted))
    assert wrong == []
