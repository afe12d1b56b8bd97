from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Annotated, Any

import pytest
from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.utils import timezone

from mqadmin.action_runs import runner, runs
from mqadmin.action_runs.models import ActionRun
from mqadmin.action_runs.runs import InProgress, Refusal, Result
from mqadmin.actions import registry
from mqadmin.actions.declaration import (
    ActionRefused,
    ActionUnavailable,
    Change,
    InstallationAction,
    ItemState,
    Preview,
    Undo,
)
from mqadmin.audit.models import AuditEntry, Outcome
from mqadmin.clusters.models import Cluster
from mqadmin.people.caller import Caller, Way
from tests.mqadmin.action_runs.conftest import NAME, House
from tests.support.callers import caller

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("cluster")]

VALUES = {"house": "no 7", "colour": "red"}


def run(person: Any, values: dict[str, Any] | None = None, **how: Any) -> Result:
    result = runner.run(caller(person), NAME, "local", VALUES if values is None else values, **how)
    assert isinstance(result, Result)
    return result


def entry() -> AuditEntry:
    """The one entry that the audit has."""
    return AuditEntry.objects.get()


def test_a_run_is_carried_out_and_audited_with_before_after_and_each_item(house: House, ann: AbstractUser) -> None:
    result = run(ann)
    assert house.doors == {"a": "red", "b": "red"}
    assert result.outcome == Outcome.DONE
    assert [(one.item, one.state) for one in result.items] == [("a", "done"), ("b", "done")]
    assert result.undo == Undo(NAME, {"house": "no 7", "colour": "red"})
    said = entry()
    assert (said.actor, said.action, said.cluster, said.subject) == ("ann", NAME, "local", "no 7")
    assert said.arguments == {"house": "no 7", "colour": "red", "doors": [], "coats": 2, "is_glossy": False}
    assert said.before == {"a": {"colour": "white"}, "b": {"colour": "white"}}
    assert said.after == {"a": {"colour": "red"}, "b": {"colour": "red"}}
    assert runs.find(result.run_id) == result


def test_a_preview_changes_nothing_and_is_not_audited(house: House, ann: AbstractUser) -> None:
    shown = runner.preview(caller(ann), NAME, "local", VALUES)
    assert [change.after for change in shown.changes] == [{"colour": "red"}] * 2
    assert house.doors["a"] == "white"
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("who", ["nobody in particular", "reader", "disabled"])
def test_whoever_lacks_the_permission_is_refused(house: House, ann: AbstractUser, who: str) -> None:
    ann.is_active = False
    bob = get_user_model().objects.create_user("bob")
    people = {"nobody in particular": AnonymousUser(), "reader": bob, "disabled": ann}
    result = run(people[who])
    assert (result.outcome, result.refusal) == (Outcome.REFUSED, Refusal.PERMISSION)
    assert entry().reason == result.reason
    assert not house.painted
    with pytest.raises(runner.PermissionRefused):
        runner.preview(caller(people[who]), NAME, "local", VALUES)


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({}, "house"),
        ({"house": "no 7", "colour": "green"}, "colour"),
        ({"house": "no 7", "coats": "0"}, "coats"),
        ({"house": "no 7", "coats": "٣"}, "coats"),
        ({"house": "no 7", "doors": ["z"]}, "doors"),
        ({"house": "no 7", "size": 3}, ""),
        ({"house": "x" * 2_000_000}, "house"),
        ({"house": "a\0b"}, "house"),
        ({"house": "no 7", "colour": "blue", "is_glossy": True}, "is_glossy"),
    ],
)
def test_arguments_that_cannot_be_are_refused_by_name(house: House, ann: AbstractUser, values: Any, wrong: str) -> None:
    result = run(ann, values)
    assert result.refusal == Refusal.ARGUMENTS
    assert set(result.errors) == {wrong}
    assert not house.painted
    assert entry().outcome == Outcome.REFUSED
    assert len(str(entry().arguments)) < 1000
    assert not ActionRun.objects.exists()


def test_json_values_are_read_like_those_of_a_form(house: House, ann: AbstractUser) -> None:
    run(ann, {"house": "no 7", "colour": "blue", "doors": ["b"], "coats": 3, "is_glossy": False})
    assert house.doors == {"a": "white", "b": "blue"}


@pytest.mark.parametrize(
    ("error", "outcome", "refusal"),
    [
        (ActionRefused("It is a monument."), Outcome.REFUSED, Refusal.RULE),
        (ActionUnavailable("Nobody opens."), Outcome.FAILED, None),
    ],
)
def test_what_a_preview_refuses_is_an_outcome(
    house: House, ann: AbstractUser, error: Exception, outcome: Outcome, refusal: Refusal | None
) -> None:
    house.refusal = error
    result = run(ann, key="k")
    assert (result.outcome, result.refusal, result.reason) == (outcome, refusal, str(error))
    assert entry().outcome == outcome
    house.refusal = None
    assert run(ann, key="k").outcome == Outcome.DONE, "nothing was done under that key"


def test_a_mistake_in_the_preview_is_a_failure_with_one_entry(house: House, ann: AbstractUser) -> None:
    house.refusal = ZeroDivisionError()
    assert run(ann).outcome == Outcome.FAILED
    assert entry().outcome == Outcome.FAILED


def fails(change: Change) -> Any:
    return change.failed("The paint is out.")


def is_lost(change: Change) -> Any:
    return change.unknown("No answer came.")


def test_an_item_that_fails_is_an_outcome_of_its_own(house: House, ann: AbstractUser) -> None:
    house.fates = {"a": fails}
    result = run(ann)
    assert result.outcome == Outcome.PARTIAL
    assert [(one.state, one.words) for one in result.items] == [("failed", "The paint is out."), ("done", "")]
    assert entry().after == {"a": {"colour": "white"}, "b": {"colour": "red"}}


@pytest.mark.parametrize(
    ("fates", "outcome"),
    [({"a": fails, "b": fails}, Outcome.FAILED), ({"a": fails, "b": is_lost}, Outcome.UNKNOWN)],
)
def test_no_item_done_is_a_failure_or_not_known(house: House, ann: AbstractUser, fates: Any, outcome: str) -> None:
    house.fates = fates
    result = run(ann)
    assert (result.outcome, result.undo) == (outcome, None)


def test_a_mistake_in_mid_action_leaves_the_rest_unknown_and_the_audit_says_so(house: House, ann: AbstractUser) -> None:
    def breaks(change: Change) -> Any:
        raise ZeroDivisionError

    house.fates = {"b": breaks}
    result = run(ann)
    assert result.outcome == Outcome.PARTIAL
    assert [one.state for one in result.items] == [ItemState.DONE, ItemState.UNKNOWN]
    assert entry().after == {"a": {"colour": "red"}, "b": None}
    assert "mistake" in result.reason


def test_a_preview_that_no_longer_holds_refuses(house: House, ann: AbstractUser) -> None:
    seen = runner.preview(caller(ann), NAME, "local", VALUES).fingerprint
    house.doors["a"] = "green"
    result = run(ann, fingerprint=seen)
    assert result.refusal == Refusal.STALE
    assert house.doors == {"a": "green", "b": "white"}
    assert entry().outcome == Outcome.REFUSED
    again = runner.preview(caller(ann), NAME, "local", VALUES).fingerprint
    assert run(ann, fingerprint=again).outcome == Outcome.DONE


def test_the_same_key_never_does_it_twice(house: House, ann: AbstractUser) -> None:
    seen = runner.preview(caller(ann), NAME, "local", VALUES).fingerprint
    first = run(ann, key="once", fingerprint=seen)
    second = run(ann, key="once", fingerprint=seen)
    assert (second.run_id, second.outcome, second.is_repeat) == (first.run_id, Outcome.DONE, True)
    assert len(house.painted) == 2
    assert AuditEntry.objects.count() == 1


def test_a_key_is_one_persons_and_one_changes(house: House, ann: AbstractUser) -> None:
    run(ann, key="once")
    other = run(ann, VALUES | {"colour": "blue"}, key="once")
    assert other.refusal == Refusal.KEY_REUSED
    bob = get_user_model().objects.create_superuser("bob")
    assert run(bob, key="once").outcome == Outcome.DONE


def test_the_second_of_two_clicks_hears_that_the_first_is_under_way(house: House, ann: AbstractUser) -> None:
    seen: list[Result | InProgress] = []
    house.meanwhile = lambda: seen.append(runner.run(caller(ann), NAME, "local", VALUES, key="once"))
    result = run(ann, key="once")
    (second,) = seen
    assert isinstance(second, InProgress)
    assert second.run_id == result.run_id
    assert len(house.painted) == 2


def test_two_people_never_change_the_same_subject_at_once(house: House, ann: AbstractUser) -> None:
    bob = get_user_model().objects.create_superuser("bob")
    seen: list[Any] = []
    house.meanwhile = lambda: seen.append(runner.run(caller(bob), NAME, "local", VALUES))
    assert run(ann).outcome == Outcome.DONE
    (refused,) = seen
    assert refused.refusal == Refusal.BUSY
    assert "ann" in refused.reason
    house.meanwhile = lambda: None
    assert run(bob).outcome == Outcome.DONE


def test_a_name_must_be_typed_where_nothing_takes_it_back(
    house: House, ann: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = _confirmed(registry.find(NAME))
    monkeypatch.setitem(registry.ACTIONS, NAME, asking)
    assert run(ann, key="k").refusal == Refusal.CONFIRMATION
    assert run(ann, key="k", confirmation="no 8").refusal == Refusal.CONFIRMATION
    assert run(ann, key="k", confirmation="no 7").outcome == Outcome.DONE


def _confirmed(action: Any) -> Any:
    return dataclasses.replace(action, is_confirmed_by_name=True)


def test_a_run_whose_process_died_is_audited_as_not_known_and_frees_its_subject(
    house: House, ann: AbstractUser
) -> None:
    def dies() -> None:
        raise KeyboardInterrupt

    house.meanwhile = dies
    with pytest.raises(KeyboardInterrupt):
        run(ann)
    assert not AuditEntry.objects.exists()
    house.meanwhile = lambda: None
    assert run(ann).refusal == Refusal.BUSY
    now = timezone.now() + runs.ABANDONED_AFTER + timedelta(seconds=1)
    assert runs.audit_abandoned(now) == 1
    assert runs.audit_abandoned(now) == 0
    assert [one.outcome for one in AuditEntry.objects.order_by("pk")] == ["refused", "unknown"]
    assert run(ann).outcome == Outcome.DONE


def test_a_run_that_outlived_its_time_has_one_entry_all_the_same(house: House, ann: AbstractUser) -> None:
    late = timezone.now() + runs.ABANDONED_AFTER + timedelta(seconds=1)
    house.meanwhile = lambda: runs.audit_abandoned(late)  # type: ignore[assignment,return-value]
    assert run(ann).outcome == Outcome.UNKNOWN
    assert entry().outcome == Outcome.UNKNOWN


def test_keys_are_forgotten_and_the_audit_stays(house: House, ann: AbstractUser) -> None:
    result = run(ann, key="once")
    assert runs.forget_old_keys(timezone.now()) == 0
    assert runs.forget_old_keys(timezone.now() + runs.KEYS_KEPT_FOR + timedelta(seconds=1)) == 1
    assert runs.find(result.run_id) == result


def test_an_unknown_action_or_cluster_is_the_callers_mistake(house: House, ann: AbstractUser) -> None:
    with pytest.raises(registry.UnknownAction):
        runner.run(caller(ann), "demolish", "local", VALUES)
    with pytest.raises(Cluster.DoesNotExist):
        runner.run(caller(ann), NAME, "nowhere", VALUES)


def test_two_actions_never_share_a_name(house: House) -> None:
    with pytest.raises(ValueError, match="two actions"):
        registry.register(_confirmed(registry.find(NAME)))


def test_the_audit_says_which_way_a_wish_came_in_and_from_where(house: House, ann: AbstractUser) -> None:
    asking = Caller(person=ann, way=Way.REST, address="2001:db8::7", user_agent="curl/8\0" + "x" * 300, via="nightly")
    runner.run(asking, NAME, "local", VALUES)
    said = entry()
    assert (said.way, said.address, said.via) == ("rest", "2001:db8::7", "nightly")
    assert (said.user_agent[:8], len(said.user_agent)) == ("curl/8xx", 200)


def test_a_run_whose_process_died_is_audited_with_its_way(house: House, ann: AbstractUser) -> None:
    house.meanwhile = _dies
    with pytest.raises(KeyboardInterrupt):
        runner.run(Caller(person=ann, way=Way.COMMAND), NAME, "local", VALUES)
    runs.audit_abandoned(timezone.now() + runs.ABANDONED_AFTER + timedelta(seconds=1))
    assert (entry().way, entry().outcome) == ("command", "unknown")


def test_the_same_key_from_another_address_is_the_same_run(house: House, ann: AbstractUser) -> None:
    first = runner.run(Caller(person=ann, way=Way.REST, address="192.0.2.1"), NAME, "local", VALUES, key="once")
    second = runner.run(Caller(person=ann, way=Way.REST, address="192.0.2.2"), NAME, "local", VALUES, key="once")
    assert first.run_id == second.run_id


def _dies() -> None:
    raise KeyboardInterrupt


SIGN = "put_up_sign"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PutUpSign:
    text: Annotated[str, forms.CharField(label="Text")]


@pytest.fixture
def sign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers an action about the installation itself, which makes a secret."""
    action: InstallationAction[PutUpSign, None] = InstallationAction(
        name=SIGN,
        title="Put up a sign",
        permission="mq_clusters.change_topic",
        arguments=PutUpSign,
        subject="text",
        preview=lambda arguments: Preview((Change("", {}, {"text": arguments.text}),), None),
        carry_out=lambda _arguments, preview: iter([preview.changes[0].done(secret="s3same")]),
    )
    monkeypatch.setitem(registry.ACTIONS, SIGN, action)


@pytest.mark.usefixtures("sign")
def test_an_action_about_the_installation_needs_no_cluster(ann: AbstractUser) -> None:
    values = {"text": "Closed"}
    seen = runner.preview(caller(ann), SIGN, "", values)
    result = runner.run(caller(ann), SIGN, "", values, fingerprint=seen.fingerprint)
    assert isinstance(result, Result)
    assert (result.outcome, result.cluster, result.subject) == ("done", "", "Closed")
    assert (entry().cluster, entry().after) == ("", values)


@pytest.mark.usefixtures("sign")
def test_a_secret_is_shown_once_and_kept_nowhere(ann: AbstractUser) -> None:
    first = runner.run(caller(ann), SIGN, "", {"text": "Closed"}, key="once")
    assert isinstance(first, Result)
    assert first.items[0].secret == "s3same"
    again = runner.run(caller(ann), SIGN, "", {"text": "Closed"}, key="once")
    assert isinstance(again, Result)
    assert again.items[0].secret == ""
    assert "s3same" not in str([list(model.objects.values()) for model in (AuditEntry, ActionRun)])
    assert "s3same" not in repr(first)


def test_an_action_with_the_wrong_kind_of_target_is_the_callers_mistake(
    house: House, sign: None, ann: AbstractUser
) -> None:
    for name, cluster in ((NAME, ""), (SIGN, "local")):
        for call in (runner.run, runner.preview):
            with pytest.raises(runner.WrongTarget):
                call(caller(ann), name, cluster, {})
        with pytest.raises(runner.WrongTarget):
            runner.may(caller(ann), name, cluster)
    assert not AuditEntry.objects.exists()
