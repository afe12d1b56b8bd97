"""A mended copy is written, replaced and discarded; the original stays, and the audit keeps no body."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser, Group

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions.declaration import ActionRefused
from mqadmin.audit.models import AuditEntry, Outcome
from mqadmin.deadletters.models import DeadLetter, KeptMessage, MendedCopy
from mqadmin.mending import mend_dead_letter
from mqadmin.mending.originals import Content, Mending
from mqadmin.people.caller import Caller
from mqadmin.people.masking import read_rules
from mqadmin.people.roles import Role
from tests.mqadmin.mending.conftest import BODY
from tests.support.callers import caller

pytestmark = pytest.mark.django_db(transaction=True)


def mend(person: Any, dead: DeadLetter, **values: Any) -> Result:
    result = runner.run(caller(person), "mend_dead_letter", "prod", {"dead_letter": str(dead.pk), **values})
    assert isinstance(result, Result)
    return result


@pytest.fixture
def operator(django_user_model: type[AbstractUser]) -> AbstractUser:
    operator = django_user_model.objects.create_user("olga")
    operator.groups.add(Group.objects.get_or_create(name=Role.OPERATOR)[0])
    return operator


def test_body_and_properties_are_mended_and_the_original_stays(dead: DeadLetter, ann: AbstractUser) -> None:
    result = mend(ann, dead, body='{"id": 1, "currency": "EUR"}', properties={"TAGS": "paid", "colour": "blue"})
    assert result.outcome == Outcome.DONE
    copy = MendedCopy.objects.get()
    assert (bytes(copy.body), copy.mended_by, copy.version) == (b'{"id":1,"currency":"EUR"}', "ann", 1)
    assert copy.properties == {
        "RETRY_TOPIC": "orders",
        "UNIQ_KEY": "UNIQ0",
        "__FAILURE_CLASS": "KeyError",
        "TAGS": "paid",
        "colour": "blue",
    }
    assert bytes(KeptMessage.objects.get().body) == BODY
    assert KeptMessage.objects.get().properties["colour"] == "red"


def test_the_audit_says_who_mended_what_without_the_body(dead: DeadLetter, ann: AbstractUser) -> None:
    mend(ann, dead, body='{"id":1,"currency":"EUR"}', properties={"KEYS": "order-0 k", "TAGS": "paid"})
    entry = AuditEntry.objects.get()
    assert entry.after == {"body_bytes": 25, "is_body_mended": True, "properties": {}}
    assert entry.before["properties"] == {"colour": "red"}
    assert "currency" not in str((entry.arguments, entry.before, entry.after, entry.items))


def test_an_operator_may_mend_and_what_is_not_said_stays(dead: DeadLetter, operator: AbstractUser) -> None:
    assert mend(operator, dead, properties={"colour": "blue"}).outcome == Outcome.DONE
    assert mend(operator, dead, body="{}").outcome == Outcome.DONE
    copy = MendedCopy.objects.get()
    assert (bytes(copy.body), copy.version, copy.properties["colour"]) == (b"{}", 2, "blue")


@pytest.mark.parametrize(
    ("values", "argument"),
    [
        ({"body": "{"}, "body"),
        ({"properties": {"UNIQ_KEY": "other"}}, "properties"),
        ({"properties": {"colour": 1}}, "properties"),
        ({"properties": ["colour"]}, "properties"),
        ({"body": "x\0"}, "body"),
        ({"body_as": "morse"}, "body_as"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_argument(
    dead: DeadLetter, ann: AbstractUser, values: dict[str, Any], argument: str
) -> None:
    result = mend(ann, dead, **values)
    assert (result.refusal, list(result.errors)) == (Refusal.ARGUMENTS, [argument])
    assert not MendedCopy.objects.exists()


def test_somebody_elses_newer_copy_is_not_overwritten(dead: DeadLetter, ann: AbstractUser) -> None:
    mend(ann, dead, body="{}", version=0)
    late = mend(ann, dead, body="[]", version=0)
    assert late.refusal == Refusal.RULE
    assert "ann has mended it meanwhile" in late.reason
    assert bytes(MendedCopy.objects.get().body) == b"{}"


def test_the_same_again_changes_nothing(dead: DeadLetter, ann: AbstractUser) -> None:
    mend(ann, dead, body="{}")
    assert mend(ann, dead, body="{ }").items[0].state == "unchanged"
    assert MendedCopy.objects.get().version == 1


def test_who_may_not_see_the_body_may_not_mend_it(dead: DeadLetter, operator: AbstractUser, settings: Any) -> None:
    settings.MQADMIN_MASKED = read_rules("operator:orders")
    result = mend(operator, dead, properties={"colour": "blue"})
    assert (result.outcome, result.refusal) == (Outcome.REFUSED, Refusal.RULE)
    assert "may not mend it" in result.reason


def test_a_copy_is_discarded_and_that_is_the_undo(dead: DeadLetter, ann: AbstractUser) -> None:
    undo = mend(ann, dead, body="{}").undo
    assert undo is not None
    result = runner.run(caller(ann), undo.action, "prod", undo.arguments)
    assert result.outcome == Outcome.DONE  # type: ignore[union-attr]
    assert not MendedCopy.objects.exists()
    again = runner.run(caller(ann), undo.action, "prod", undo.arguments)
    assert again.items[0].state == "unchanged"  # type: ignore[union-attr]


def test_one_that_is_not_there_is_named(dead: DeadLetter, ann: AbstractUser) -> None:
    with pytest.raises(ActionRefused, match="has no dead letter 999"):
        runner.preview(caller(ann), "mend_dead_letter", "prod", {"dead_letter": 999})


def test_a_viewer_may_not(dead: DeadLetter, django_user_model: type[AbstractUser]) -> None:
    viewer = django_user_model.objects.create_user("vera")
    viewer.groups.add(Group.objects.get_or_create(name=Role.VIEWER)[0])
    asks: Caller = caller(viewer)
    assert not runner.may(asks, "mend_dead_letter", "prod")


def test_of_two_who_write_at_the_same_moment_one_fails(
    dead: DeadLetter, ann: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mend_dead_letter, "write_copy", lambda *_, **__: False)
    result = mend(ann, dead, body="{}")
    assert (result.items[0].state, result.items[0].words) == ("failed", "Somebody else has mended it in between.")


def test_a_copy_is_written_only_over_the_version_that_was_read(dead: DeadLetter, ann: AbstractUser) -> None:
    mend(ann, dead, body="{}")
    wanted = Content(b"[]", {})
    for version in (0, 2):
        stale = Mending(Content(BODY, {}), None, version)
        assert not mend_dead_letter.write_copy(dead, stale, wanted, by="bob")
    assert bytes(MendedCopy.objects.get().body) == b"{}"
