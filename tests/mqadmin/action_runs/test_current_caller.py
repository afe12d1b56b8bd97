"""Who asks is known to previews and runs; what a message carries is not in the audit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import pytest
from django import forms
from django.contrib.auth.models import AbstractUser

from mqadmin.action_runs import runner
from mqadmin.actions import registry
from mqadmin.actions.arguments import ContentField
from mqadmin.actions.declaration import Action, Change, ItemOutcome, Preview
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.people.access import Scope
from mqadmin.people.current_caller import current_caller
from mqadmin.people.roles import Role
from tests.support.callers import caller

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("cluster")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    letter: Annotated[str, forms.CharField()]
    text: Annotated[str, ContentField(max_length=20)]


@pytest.fixture(autouse=True)
def signed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """By whom each letter was signed; the action is registered for the test."""
    signed: dict[str, str] = {}

    def preview(_: Cluster, arguments: Sign) -> Preview[str]:
        return Preview((Change("", {}, {"by": current_caller().name}),), current_caller().name)

    def carry_out(_: Cluster, arguments: Sign, found: Preview[str]) -> Iterator[ItemOutcome]:
        signed[arguments.letter] = current_caller().name
        yield found.changes[0].done()

    action = Action(
        name="sign",
        title="Sign",
        permission="mq_clusters.change_topic",
        arguments=Sign,
        subject="letter",
        preview=preview,
        carry_out=carry_out,
    )
    monkeypatch.setitem(registry.ACTIONS, "sign", action)
    return signed


def test_a_preview_and_a_run_know_who_asks(signed: dict[str, str], ann: AbstractUser) -> None:
    values = {"letter": "a", "text": "the secret"}
    assert runner.preview(caller(ann), "sign", "local", values).plan == "ann"
    runner.run(caller(ann), "sign", "local", values)
    assert signed == {"a": "ann"}
    with pytest.raises(LookupError):
        current_caller()


@pytest.mark.parametrize("text", ["the secret", "the secret, and more than may be said"])
def test_the_audit_keeps_length_and_digest_of_a_content(text: str, ann: AbstractUser) -> None:
    runner.run(caller(ann), "sign", "local", {"letter": "a", "text": text})
    kept = AuditEntry.objects.get().arguments["text"]
    assert kept.startswith(f"{len(text)} characters, sha256 ")
    assert "secret" not in kept


def test_a_callers_role_is_never_above_its_bounds(cluster: Cluster, admin_user: AbstractUser) -> None:
    asks = caller(admin_user)
    assert asks.role_on(cluster) == Role.ADMIN
    assert replace(asks, scope=Scope(role=Role.VIEWER)).role_on(cluster) == Role.VIEWER
