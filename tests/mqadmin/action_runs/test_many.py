"""One action on many houses at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser

from mqadmin.action_runs import many
from mqadmin.action_runs.many import ManyResult, preview_many, run_many
from mqadmin.action_runs.runs import Refusal, Result, find_batch
from mqadmin.actions import registry
from mqadmin.actions.declaration import Action, Change, ItemOutcome, Preview
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from tests.mqadmin.action_runs.conftest import NAME, PaintDoors
from tests.support.callers import caller

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("cluster")]

HOUSES = ("no 7", "no 8", "no 9")


@pytest.fixture
def street(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The colours of some houses; "no 8" is repainted under the eyes of whoever looks at it when it is "wet"."""
    colours = dict.fromkeys(HOUSES, "white")

    def preview(cluster: Cluster, arguments: PaintDoors) -> Preview[None]:
        return Preview((Change("", {"colour": colours[arguments.house]}, {"colour": arguments.colour}),), None)

    def carry_out(cluster: Cluster, arguments: PaintDoors, preview: Preview[None]) -> Iterator[ItemOutcome]:
        colours[arguments.house] = arguments.colour
        yield preview.changes[0].done()

    action: Action[PaintDoors, None] = Action(
        name=NAME,
        title="Paint the doors",
        permission="mq_clusters.change_topic",
        arguments=PaintDoors,
        subject="house",
        preview=preview,
        carry_out=carry_out,
    )
    monkeypatch.setitem(registry.ACTIONS, NAME, action)
    return colours


def paint(person: Any, subjects: Any = HOUSES, **how: Any) -> ManyResult:
    return run_many(caller(person), NAME, "local", {"colour": "red"}, subjects, **how)


def outcomes(result: ManyResult) -> list[str]:
    return [one.outcome for one in result.results.values() if isinstance(one, Result)]


def test_each_subject_is_changed_and_audited_by_itself(street: dict[str, str], ann: AbstractUser) -> None:
    result = paint(ann)
    assert street == dict.fromkeys(HOUSES, "red")
    assert list(result.results) == list(HOUSES)
    assert [(one.subject, one.batch) for one in AuditEntry.objects.order_by("pk")] == [
        (house, result.batch) for house in HOUSES
    ]
    assert [one.subject for one in find_batch(result.batch)] == list(HOUSES)


def test_previews_say_what_becomes_of_each(street: dict[str, str], ann: AbstractUser) -> None:
    first, second = preview_many(caller(ann), NAME, "local", {"colour": "red"}, ["no 7", "x" * 21])
    assert first.preview is not None
    assert first.preview.changes[0].before == {"colour": "white"}
    assert (second.preview, bool(second.reason)) == (None, True)
    assert not AuditEntry.objects.exists()


def test_one_that_has_changed_since_is_refused_and_the_others_are_done(
    street: dict[str, str], ann: AbstractUser
) -> None:
    seen = {
        one.subject: one.preview.fingerprint
        for one in preview_many(caller(ann), NAME, "local", {"colour": "red"}, HOUSES)
        if one.preview
    }
    street["no 8"] = "green"
    result = paint(ann, fingerprints=seen)
    assert outcomes(result) == ["done", "refused", "done"]
    refused = result.results["no 8"]
    assert isinstance(refused, Result)
    assert refused.refusal == Refusal.STALE
    assert street["no 8"] == "green"


def test_the_same_key_does_none_of_them_twice(street: dict[str, str], ann: AbstractUser) -> None:
    first, second = paint(ann, key="once"), paint(ann, key="once")
    assert second.batch == first.batch
    assert all(isinstance(one, Result) and one.is_repeat for one in second.results.values())
    assert AuditEntry.objects.count() == 3
    bob = get_user_model().objects.create_superuser("bob")
    assert paint(bob, key="once").batch != first.batch


def test_the_number_of_subjects_confirms_what_nothing_takes_back(
    street: dict[str, str], ann: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = dataclasses.replace(registry.find(NAME), is_confirmed_by_name=True)
    monkeypatch.setitem(registry.ACTIONS, NAME, asking)
    assert outcomes(paint(ann, confirmation="2")) == ["refused"] * 3
    assert outcomes(paint(ann, confirmation="3")) == ["done"] * 3


def test_those_for_which_no_time_is_left_are_not_begun(street: dict[str, str], ann: AbstractUser) -> None:
    ticks = count(0, int(many.BEGIN_WITHIN_S))
    result = paint(ann, clock=lambda: float(next(ticks)))
    assert (list(result.results), result.not_begun) == (["no 7"], ("no 8", "no 9"))
    assert street["no 8"] == "white"


@pytest.mark.parametrize("subjects", [[], ["no 7", "no 7"], [str(one) for one in range(101)]])
def test_none_one_twice_and_too_many_are_refused(street: dict[str, str], ann: AbstractUser, subjects: Any) -> None:
    with pytest.raises(many.WrongSubjects):
        paint(ann, subjects)
    assert not AuditEntry.objects.exists()
