"""Role × action × cluster × way in, whole, generated from the declarations: nobody gets what their row does not say.

The runner and REST run each action with an argument that none takes, so that whoever may is refused for that. A page
is asked with GET, which shows a form or says no; what it shows is tested with the pages, so here nothing is rendered.
A test is a row: one caller, every action at every place, in one database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.template.backends.django import Template
from django.test import Client
from django.utils import timezone

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions import registry
from mqadmin.actions.declaration import Action, AnyAction
from mqadmin.api import throttles
from mqadmin.api.run_answers import KIND_OF_REFUSAL
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.console.action_pages import PAGES
from mqadmin.deadletters.models import DeadLetter
from mqadmin.people.models import ReadOnlyCluster
from mqadmin.people.roles import LOWEST_ROLE, Role
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import Target
from mqadmin.tokens import guesses
from mqadmin.tokens.models import ApiToken, digest_of, new_secret
from tests.support import console_rows
from tests.support.callers import caller
from tests.support.dead_letter_brokers import dead_message
from tests.support.people import make_person

pytestmark = pytest.mark.django_db

# Who asks: nobody; without a role; a role on all clusters; a role on `mine` alone; a deactivated account; a superuser.
PEOPLE = (
    "nobody",
    "no role",
    "viewer",
    "operator",
    "admin",
    "viewer of mine",
    "operator of mine",
    "admin of mine",
    "deactivated admin",
    "superuser",
)
PLACES = ("mine", "other", "read-only")
# These rows stand for all of them in `make check` and on PostgreSQL.
FEW = ("nobody", "operator", "admin of mine")
_RANKS = {"viewer": 0, "operator": 1, "admin": 2}


@dataclass(frozen=True)
class Token:
    """A token of somebody: its role, the clusters that it is for (none: all), and whether it still holds."""

    role: str = "admin"
    clusters: tuple[str, ...] = ()
    is_expired: bool = False
    is_revoked: bool = False

    @property
    def is_valid(self) -> bool:
        return not (self.is_expired or self.is_revoked)


# Everybody with a token that takes nothing away, and those that take something away.
TOKENS = [
    *((who, Token()) for who in PEOPLE),
    *(("superuser", Token(role=role)) for role in ("viewer", "operator")),
    ("superuser", Token(clusters=("mine",))),
    ("superuser", Token(clusters=("other", "read-only"))),
    ("operator", Token(clusters=("other",))),
    ("operator of mine", Token(clusters=("other",))),
    ("admin of mine", Token(role="operator")),
    ("superuser", Token(is_expired=True)),
    ("superuser", Token(is_revoked=True)),
]


FEW_TOKENS = (("nobody", Token()), ("operator", Token()), ("admin of mine", Token(role="operator")))


# The few read a role on all clusters and one on a single cluster; what follows from these no database decides.
BEYOND_THE_FEW = (pytest.mark.sweep, pytest.mark.sqlite)


def rows(wanted: Iterable[Any], few: Collection[Any]) -> list[Any]:
    return [one if one in few else pytest.param(*_as_tuple(one), marks=BEYOND_THE_FEW) for one in wanted]


def _as_tuple(one: Any) -> tuple[Any, ...]:
    return one if isinstance(one, tuple) else (one,)


@pytest.fixture
def places() -> dict[str, Cluster]:
    now = timezone.now()
    found = {name: console_rows.make_cluster(name, now=now) for name in PLACES}
    for cluster in found.values():
        console_rows.make_group(cluster, "billing", now=now, lag=None)
        console_rows.make_dead_letters(cluster, "billing", [dead_message(0)], now=now)
        ReplayJob.objects.create(
            cluster=cluster,
            identity="a",
            group_name="billing",
            until_id=0,
            target=Target.ORIGIN,
            rate_per_s=100,
            stop_percent=5,
            created_at=now,
        )
    ReadOnlyCluster.objects.create(cluster=found["read-only"])
    return found


def person(who: str, places: dict[str, Cluster]) -> Any:
    if who == "nobody":
        return AnonymousUser()
    if who == "superuser":
        return get_user_model().objects.create_superuser("ann")
    if who == "no role":
        return make_person("ann")
    role = next(role for role in Role if role in who)
    made = make_person("ann", role, places["mine"] if "of mine" in who else None)
    if who == "deactivated admin":
        made.is_active = False
        made.save()
    return made


def has_right(who: str, permission: str, place: str) -> bool:
    """The rule, said independently: the permission's lowest role, on the clusters that the person has a role on."""
    if who in ("nobody", "no role", "deactivated admin"):
        return False
    if who == "superuser":
        return True
    role, _, only = who.partition(" of ")
    if only and place != only:
        return False
    return _RANKS[role] >= _RANKS[LOWEST_ROLE[permission]]


def leaves_room(token: Token, permission: str, place: str) -> bool:
    """The rule of tokens, said independently: at most its role, on its clusters, about the installation only of all."""
    return _RANKS[token.role] >= _RANKS[LOWEST_ROLE[permission]] and (not token.clusters or place in token.clusters)


def is_for_oneself(who: str, action: AnyAction) -> bool:
    """Whether somebody may at least do it to their own account; the run of this test names no account."""
    return bool(action.own_argument) and who not in ("nobody", "deactivated admin")


def cells() -> Iterator[tuple[str, AnyAction, str]]:
    """Every action at every place: a cluster, or "" for those about the installation."""
    for name, action in registry.ACTIONS.items():
        for place in PLACES if isinstance(action, Action) else ("",):
            yield name, action, place


def cells_of_permissions() -> Iterator[tuple[str, AnyAction, str]]:
    """One action of each permission at every place: a token takes permissions away, whatever the action."""
    seen = set()
    for name, action, place in cells():
        if (action.permission, place) not in seen:
            seen.add((action.permission, place))
            yield name, action, place


def refusal(has_permission: bool, place: str) -> Refusal:
    """Why the run of this test is refused."""
    if not has_permission:
        return Refusal.PERMISSION
    return Refusal.READ_ONLY if place == "read-only" else Refusal.ARGUMENTS


@pytest.mark.parametrize("who", rows(PEOPLE, FEW))
@pytest.mark.slow
def test_a_run_is_refused_unless_the_row_says_otherwise(places: dict[str, Cluster], who: str) -> None:
    asking = caller(person(who, places))
    found, wanted = {}, {}
    for name, action, place in cells():
        result = runner.run(asking, name, place, {"no such argument": "x"})
        assert isinstance(result, Result)
        found[name, place] = (result.refusal, runner.may(asking, name, place))
        has_permission = has_right(who, action.permission, place)
        wanted[name, place] = (refusal(has_permission, place), has_permission or is_for_oneself(who, action))
    assert found == wanted
    outcomes = AuditEntry.objects.order_by("number").values_list("action", "cluster", "outcome")
    assert list(outcomes) == [(name, place, "refused") for name, place in found]


@pytest.mark.parametrize("who", rows(PEOPLE, FEW))
@pytest.mark.slow
def test_a_page_is_refused_unless_the_row_says_otherwise(
    places: dict[str, Cluster], who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Template, "render", lambda *_args, **_how: "")
    asked = person(who, places)
    client = Client()
    if who not in ("nobody", "deactivated admin"):
        client.force_login(asked)
    make_person("bob")
    subjects = {"topic": "orders", "group": "billing", "person": "bob", "cluster": "mine", "job": "nightly"}
    of_place = {place: ids_of(place) for place in PLACES} | {"": {}}
    found, wanted = {}, {}
    for name, page in PAGES.items():
        action = registry.ACTIONS[name]
        for place in PLACES if page.has_cluster else ("",):
            # The page of a patch is asked for by the failure, not by the group.
            kind = "failure" if name == "patch_dead_letters" else action.subject
            address = page.address(place, (subjects | of_place[place]).get(kind, "x"))
            found[name, place] = client.get(address).status_code
            if who in ("nobody", "deactivated admin"):
                wanted[name, place] = 302
            elif place and not has_right(who, "mq_clusters.view_cluster", place):
                wanted[name, place] = 404
            else:
                is_shown = has_right(who, action.permission, place) or is_for_oneself(who, action)
                wanted[name, place] = 200 if is_shown else 403
    assert found == wanted


@pytest.mark.parametrize(("who", "token"), rows(TOKENS, FEW_TOKENS), ids=[f"{who}, {token}" for who, token in TOKENS])
@pytest.mark.slow
def test_rest_refuses_unless_the_row_and_the_token_say_otherwise(
    places: dict[str, Cluster], who: str, token: Token, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    # Of these REST needs none for a token.
    settings.MIDDLEWARE = []
    monkeypatch.setattr(throttles, "WRITES_PER_MIN", 10**9)
    monkeypatch.setattr(guesses, "FAILURES_PER_MIN", 10**9)
    asked = person(who, places)
    client = client_of(asked, token) if who != "nobody" else Client()
    is_known = who not in ("nobody", "deactivated admin") and token.is_valid
    found, wanted = {}, {}
    for name, action, place in cells() if token == Token() else cells_of_permissions():
        tree = f"/api/v1/clusters/{place}" if place else "/api/v1"
        body = {"arguments": {"no such argument": "x"}}
        answer = client.post(f"{tree}/actions/{name}/run", body, content_type="application/json").json()
        found[name, place] = (answer["type"], "run" in answer)
        has_permission = has_right(who, action.permission, place) and leaves_room(token, action.permission, place)
        kind = KIND_OF_REFUSAL[refusal(has_permission, place)].address
        wanted[name, place] = (kind, True) if is_known else ("/api/v1/problems/not-authenticated", False)
    assert found == wanted
    assert AuditEntry.objects.filter(outcome="refused", way="rest").count() == (len(found) if is_known else 0)
    # Of a token that takes nothing away it is what the runner says.
    if is_known and token != Token():
        allowed = {
            (one["name"], place)
            for place in ("", *PLACES)
            if not place or is_seen(who, token, place)
            for one in client.get(f"/api/v1/clusters/{place}/actions" if place else "/api/v1/actions").json()
            if one["is_allowed"]
        }
        assert allowed == {
            (name, place)
            for name, action, place in cells()
            if leaves_room(token, action.permission, place)
            and (has_right(who, action.permission, place) or is_for_oneself(who, action))
        }


def ids_of(place: str) -> dict[str, str]:
    """Returns the subjects of actions that have a number for a name."""
    dead = DeadLetter.objects.get(cluster__name=place)
    replay = ReplayJob.objects.get(cluster__name=place)
    return {
        "failure": str(dead.failure_id),
        "dead_letter": str(dead.pk),
        "replay": str(replay.pk),
        "alert": "1",
        "file": "1",
    }


def is_seen(who: str, token: Token, place: str) -> bool:
    permission = "mq_clusters.view_cluster"
    return has_right(who, permission, place) and leaves_room(token, permission, place)


def client_of(asked: Any, token: Token) -> Client:
    """Returns a client that shows a token of the person."""
    secret, now = new_secret(), timezone.now()
    ApiToken.objects.create(
        person=asked,
        name="matrix",
        digest=digest_of(secret),
        role=token.role,
        clusters=list(token.clusters),
        expires_at=now - timedelta(seconds=1) if token.is_expired else now + timedelta(days=1),
        revoked_at=now if token.is_revoked else None,
    )
    return Client(headers={"Authorization": f"Bearer {secret}"})
