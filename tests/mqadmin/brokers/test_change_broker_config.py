from __future__ import annotations

from typing import Any

import pytest

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions.declaration import Undo
from mqadmin.audit.models import AuditEntry
from tests.support.callers import caller

pytestmark = pytest.mark.usefixtures("cluster")


def change(person: Any, settings: str, broker: str = "broker-a") -> Result:
    values = {"broker": broker, "settings": settings}
    result = runner.run(caller(person), "change_broker_config", "prod", values)
    assert isinstance(result, Result)
    return result


def test_settings_change_and_are_taken_back(settings_of_broker, ann) -> None:
    result = change(ann, "fileReservedTime = 48\r\n\nautoCreateTopicEnable=true")
    assert settings_of_broker["fileReservedTime"] == "48"
    assert {one.item: (one.state, one.after) for one in result.items} == {
        "fileReservedTime": ("done", {"value": "48", "default": "72"}),
        "autoCreateTopicEnable": ("unchanged", {"value": "true", "default": "true"}),
    }
    assert AuditEntry.objects.get().before["fileReservedTime"] == {"value": "72", "default": "72"}
    assert result.undo == Undo("change_broker_config", {"broker": "broker-a", "settings": "fileReservedTime=72"})
    runner.run(caller(ann), result.undo.action, "prod", result.undo.arguments)
    assert settings_of_broker["fileReservedTime"] == "72"


def test_one_that_the_broker_keeps_all_the_same_has_failed(settings_of_broker, ann) -> None:
    result = change(ann, "listenPort=1\nfileReservedTime=48")
    assert {one.item: one.state for one in result.items} == {"listenPort": "failed", "fileReservedTime": "done"}
    assert result.outcome == "partial"


def test_the_brokers_refusal_is_the_outcome_of_each(settings_of_broker, ann) -> None:
    settings_of_broker.refusal = "Can not update config in black list."
    result = change(ann, "fileReservedTime=48")
    assert (result.outcome, "black list" in result.items[0].words) == ("failed", True)


@pytest.mark.parametrize(
    "lines", ["noSuchThing=1", "fileReservedTime", "=1", "a=1\na=2", "", "\n".join(f"a{n}=1" for n in range(51))]
)
def test_what_cannot_be_is_refused_at_the_field(settings_of_broker, ann, lines: str) -> None:
    result = change(ann, lines)
    assert (result.refusal, list(result.errors)) == (Refusal.ARGUMENTS, ["settings"])
    assert settings_of_broker["fileReservedTime"] == "72"


def test_what_may_hold_a_password_is_refused_before_the_audit_keeps_it(settings_of_broker, ann) -> None:
    settings_of_broker["initAuthenticationUser"] = '{"password":"s3same"}'
    result = change(ann, "initAuthenticationUser={}")
    assert (result.refusal, list(result.errors)) == (Refusal.ARGUMENTS, ["settings"])
    assert "may hold a password" in result.reason
    entry = AuditEntry.objects.get()
    assert "s3same" not in f"{entry.before}{entry.after}{entry.items}{entry.reason}"
    assert settings_of_broker["initAuthenticationUser"] == '{"password":"s3same"}'


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("aclPassword = hunter2\nfileReservedTime=48", "aclPassword=…\nfileReservedTime=…"),
        ("aclPassword hunter2", "…"),
        ("hunter2\naclPassword=", "…\naclPassword=…"),
        ({"aclPassword": "hunter2"}, "…"),
        (["aclPassword", "hunter2"], ["…", "…"]),
    ],
    ids=["a setting", "without =", "on the line before", "an object", "a list"],
)
def test_what_was_typed_as_a_password_is_nowhere_in_the_audit(settings_of_broker, ann, typed: Any, kept: Any) -> None:
    assert change(ann, typed).refusal == Refusal.ARGUMENTS
    entry = AuditEntry.objects.values().get()
    assert "hunter2" not in str(entry)
    assert entry["arguments"] == {"broker": "broker-a", "settings": kept}


def test_nor_is_one_of_somebody_who_may_not_change_anything(settings_of_broker, django_user_model) -> None:
    assert change(django_user_model.objects.create_user("cleo"), "aclSecretKey=hunter2").refusal == Refusal.PERMISSION
    assert "hunter2" not in str(AuditEntry.objects.values().get())


def test_nor_is_one_that_stands_in_the_name_of_an_argument(settings_of_broker, ann) -> None:
    result = runner.run(caller(ann), "change_broker_config", "prod", {"aclPassword=hunter2": "", "password": "hunter2"})
    assert isinstance(result, Result)
    assert result.refusal == Refusal.ARGUMENTS
    assert "hunter2" not in str(AuditEntry.objects.values().get())


def test_names_with_such_a_word_in_them_are_kept(settings_of_broker, ann) -> None:
    change(ann, "fileReservedTime", broker="password-resets")
    assert AuditEntry.objects.get().arguments == {"broker": "password-resets", "settings": "fileReservedTime"}


def test_a_broker_that_is_not_there_is_refused(ann) -> None:
    assert change(ann, "fileReservedTime=48", broker="elsewhere").refusal == Refusal.RULE
