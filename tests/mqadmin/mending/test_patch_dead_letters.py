"""One JSON Patch mends many dead letters; each that it does not fit says why and stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions.declaration import ActionRefused
from mqadmin.audit.models import AuditEntry, Outcome
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import selection
from mqadmin.deadletters.models import DeadLetter, Failure, MendedCopy
from mqadmin.mending import patch_dead_letters
from mqadmin.people.masking import read_rules
from tests.support import console_rows as seed
from tests.support.callers import caller
from tests.support.dead_letter_brokers import dead_message

pytestmark = pytest.mark.django_db(transaction=True)

PATCH = json.dumps(
    [{"op": "test", "path": "/currency", "value": "EU"}, {"op": "replace", "path": "/currency", "value": "EUR"}]
)


@pytest.fixture
def failure(prod: Cluster) -> Failure:
    """Four dead letters; the currency of the last one is right already, and so the test fails there."""
    messages = [dead_message(n, body=b'{"id":%d,"currency":"%s"}' % (n, b"EU" if n < 3 else b"XX")) for n in range(4)]
    seed.make_dead_letters(prod, "billing", messages, now=timezone.now())
    return Failure.objects.get()


def run(person: Any, **values: Any) -> Result:
    result = runner.run(caller(person), "patch_dead_letters", "prod", {"group": "billing", "patch": PATCH, **values})
    assert isinstance(result, Result)
    return result


def test_all_that_it_fits_are_mended_and_the_others_say_why(failure: Failure, ann: AbstractUser) -> None:
    result = run(ann, failure=failure.pk)
    assert result.outcome == Outcome.PARTIAL
    assert sorted(one.state for one in result.items) == ["done", "done", "done", "skipped"]
    (left,) = [one for one in result.items if one.state == "skipped"]
    assert left.words
    assert sorted(bytes(one.body) for one in MendedCopy.objects.all()) == [
        b'{"id":%d,"currency":"EUR"}' % n for n in range(3)
    ]
    assert "EUR" not in str(AuditEntry.objects.get().arguments)


def test_a_second_run_is_applied_to_what_would_be_sent_now(failure: Failure, ann: AbstractUser) -> None:
    run(ann, failure=failure.pk)
    assert {one.state for one in run(ann, failure=failure.pk).items} == {"skipped"}
    assert set(MendedCopy.objects.values_list("version", flat=True)) == {1}


def test_a_large_failure_takes_several_runs_and_none_is_patched_twice(
    failure: Failure, ann: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patch_dead_letters, "PATCHED_MAX", 3)
    values = {"group": "billing", "patch": PATCH, "failure": failure.pk}
    found = runner.preview(caller(ann), "patch_dead_letters", "prod", values)
    assert (len(found.changes), len(found.warnings)) == (3, 1)
    rest = runner.preview(caller(ann), "patch_dead_letters", "prod", {**values, "after": found.plan.older})
    assert (len(rest.changes), rest.plan.older) == (1, "")
    items = {change.item for change in (*found.changes, *rest.changes)}
    assert items == {str(pk) for pk in DeadLetter.objects.values_list("pk", flat=True)}


def test_those_that_are_named_are_mended_alone(failure: Failure, ann: AbstractUser) -> None:
    first = DeadLetter.objects.get(queue_offset=0)
    assert [one.item for one in run(ann, picks=f"{first.pk}").items] == [str(first.pk)]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ({"text": "order-1"}, {1}),
        ({"body": '"id":2'}, {2}),
        ({"text": "paid", "body": '"id":0'}, {0}),
        ({"attempts": 16}, {0, 1, 2, 3}),
        ({"since": "2020-01-01T00:00:00Z"}, {0, 1, 2, 3}),
        ({"born_since": "2020-01-01T00:00:00Z", "text": "order-3"}, {3}),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_what_a_search_finds_is_mended(
    failure: Failure, ann: AbstractUser, values: dict[str, Any], numbers: set[int]
) -> None:
    mended = DeadLetter.objects.filter(pk__in=[int(one.item) for one in run(ann, **values).items])
    assert set(mended.values_list("queue_offset", flat=True)) == numbers


def test_what_a_search_finds_takes_several_runs_and_none_is_patched_twice(
    failure: Failure, ann: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patch_dead_letters, "PATCHED_MAX", 3)
    values = {"group": "billing", "patch": PATCH, "text": "paid"}
    found = runner.preview(caller(ann), "patch_dead_letters", "prod", values)
    rest = runner.preview(caller(ann), "patch_dead_letters", "prod", {**values, "after": found.plan.older})
    assert [len(one.changes) for one in (found, rest)] == [3, 1]
    assert {one.item for one in found.changes}.isdisjoint(one.item for one in rest.changes)
    monkeypatch.setattr(selection, "FOUND_WITHIN_S", 0.0)
    assert "more narrowly: one failure" in run(ann, text="paid").reason


@pytest.mark.parametrize(("archived", "count"), [("no", 3), ("yes", 1)])
def test_archived_ones_are_mended_where_they_are_wanted(
    failure: Failure, ann: AbstractUser, archived: str, count: int
) -> None:
    DeadLetter.objects.filter(queue_offset=0).update(archived_at=timezone.now())
    assert len(run(ann, failure=failure.pk, archived=archived).items) == count


@pytest.mark.parametrize(
    ("values", "argument"),
    [
        ({}, "failure"),
        ({"picks": "1;2"}, "picks"),
        ({"failure": 1, "patch": "{}"}, "patch"),
        ({"failure": 1, "after": "nowhere"}, "after"),
        ({"text": "order", "after": "nowhere"}, "after"),
        ({"picks": "1", "text": "order"}, "picks"),
        ({"until": "2026-01-01T00:00:00Z"}, "failure"),
    ],
)
def test_what_cannot_be_chosen_is_refused_by_argument(
    failure: Failure, ann: AbstractUser, values: dict[str, Any], argument: str
) -> None:
    result = run(ann, **values)
    assert (result.refusal, list(result.errors)) == (Refusal.ARGUMENTS, [argument])


def test_a_choice_of_none_is_refused(failure: Failure, ann: AbstractUser) -> None:
    with pytest.raises(ActionRefused, match="No dead letter of billing"):
        runner.preview(
            caller(ann), "patch_dead_letters", "prod", {"group": "billing", "patch": PATCH, "failure": failure.pk + 1}
        )


def test_hidden_bodies_are_left_as_they_are(failure: Failure, ann: AbstractUser, settings: Any) -> None:
    settings.MQADMIN_MASKED = read_rules("admin:orders")
    result = run(ann, failure=failure.pk)
    assert {(one.state, one.words) for one in result.items} == {("skipped", "Its body is hidden from your role.")}


def test_a_mending_in_between_makes_the_preview_stale(failure: Failure, ann: AbstractUser) -> None:
    values = {"group": "billing", "patch": PATCH, "failure": failure.pk}
    seen = runner.preview(caller(ann), "patch_dead_letters", "prod", values).fingerprint
    first = DeadLetter.objects.get(queue_offset=0)
    runner.run(caller(ann), "mend_dead_letter", "prod", {"dead_letter": str(first.pk), "body": "{}"})
    late = runner.run(caller(ann), "patch_dead_letters", "prod", values, fingerprint=seen)
    assert late.refusal == Refusal.STALE  # type: ignore[union-attr]
