"""Who may make and revoke whose tokens, by page, REST and command line."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.core.management import CommandError, call_command

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Result
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.people.access import Scope
from mqadmin.people.caller import Caller, Way
from mqadmin.people.roles import Role
from mqadmin.tokens.models import ApiToken, digest_of
from mqadmin.tokens.selectors import token_of_secret, tokens_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob(django_user_model: type[AbstractUser]) -> AbstractUser:
    return django_user_model.objects.create_user("bob")


def create(person: Any, scope: Scope | None = None, **arguments: Any) -> Result:
    values = {"token": "nightly", "person": "bob", "role": "viewer", "days": 1} | arguments
    result = runner.run(Caller(person=person, way=Way.PAGE, scope=scope), "create_token", "", values)
    assert isinstance(result, Result)
    return result


def test_anybody_makes_a_token_for_their_own_account_alone(bob: AbstractUser, django_user_model: Any) -> None:
    result = create(bob)
    assert result.outcome == "done", result.reason
    assert token_of_secret(result.items[0].secret) == ApiToken.objects.get()
    eve = django_user_model.objects.create_user("eve")
    assert create(eve, token="of bob's").outcome == "refused"
    assert create(django_user_model.objects.create_superuser("ann"), token="by an admin").outcome == "done"
    assert [token.name for token in tokens_of(bob)] == ["by an admin", "nightly"]


def test_only_a_digest_is_kept_of_the_secret(bob: AbstractUser) -> None:
    secret = create(bob).items[0].secret
    assert ApiToken.objects.get().digest == digest_of(secret)
    assert secret not in str(AuditEntry.objects.values().get())


@pytest.mark.parametrize(
    ("scope", "outcome"),
    [
        (Scope(role=Role.VIEWER), "refused"),
        (Scope(role=Role.OPERATOR), "refused"),
        (Scope(role=Role.ADMIN, clusters=frozenset(["local"])), "refused"),
        (Scope(role=Role.ADMIN), "done"),
    ],
)
def test_a_token_makes_no_wider_one(bob: AbstractUser, scope: Scope, outcome: str) -> None:
    assert create(bob, scope, role="admin").outcome == outcome


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"role": "king"}, "role"),
        ({"days": 367}, "days"),
        ({"clusters": ["nowhere"]}, "clusters"),
        ({"token": ""}, "token"),
    ],
)
def test_what_a_token_cannot_be_is_refused_by_name(bob: AbstractUser, arguments: Any, wrong: str) -> None:
    assert set(create(bob, **arguments).errors) == {wrong}


def test_a_name_is_free_again_once_its_token_is_revoked(bob: AbstractUser) -> None:
    create(bob)
    assert set(create(bob).errors) == {"token"}
    revoked = runner.run(Caller(person=bob, way=Way.PAGE), "revoke_token", "", {"token": "nightly", "person": "bob"})
    assert isinstance(revoked, Result)
    assert revoked.outcome == "done"
    assert create(bob).outcome == "done"
    assert tokens_of(bob)[0].name == "nightly"


def test_the_command_makes_lists_and_revokes(bob: AbstractUser) -> None:
    Cluster.objects.create(name="local", namesrv="127.0.0.1:9876")

    def said(*words: str) -> str:
        out = StringIO()
        call_command("api_token", *words, stdout=out)
        return out.getvalue().strip()

    secret = said("create", "bob", "nightly", "--role", "operator", "--cluster", "local", "--days", "3")
    token = token_of_secret(secret)
    assert token is not None
    assert (token.role, token.clusters) == ("operator", ["local"])
    assert "nightly  operator  local" in said("list", "bob")
    with pytest.raises(CommandError, match="has a token of this name"):
        said("create", "bob", "nightly")
    assert said("revoke", "bob", "nightly") == "revoked"
    assert said("list", "bob") == ""
    with pytest.raises(CommandError, match="no account named nobody"):
        said("list", "nobody")
