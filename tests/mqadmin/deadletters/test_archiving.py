"""Failures and dead letters are archived, restored and described: by whom it is allowed, taken back, audited."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.audit.models import AuditEntry, Outcome
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import archive_dead_letters, archive_marks, selection
from mqadmin.deadletters.models import ArchiveMark, DeadLetter, Failure
from mqadmin.deadletters.selectors import DeadLetterFilter, FailureFilter, dead_letters, failures, totals
from mqadmin.people.roles import Role
from tests.support import console_rows as seed
from tests.support.callers import caller
from tests.support.dead_letter_brokers import dead_message
from tests.support.people import make_person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def failure(prod: Cluster, now: datetime) -> Failure:
    seed.make_dead_letters(prod, "billing", [dead_message(offset) for offset in range(3)], now=now)
    return Failure.objects.get()


def run(ann: AbstractUser, action: str, **values: object) -> Result:
    result = runner.run(caller(ann), action, "prod", values)
    assert isinstance(result, Result)
    return result


def listed(prod: Cluster, *, is_archived: bool = False) -> list[int]:
    return [row.queue_offset for row in dead_letters(prod, DeadLetterFilter(is_archived=is_archived)).after(None, 50)]


def listed_failures(prod: Cluster, **wanted: object) -> int:
    return len(failures(prod, FailureFilter(**wanted)).after(None, 50))  # type: ignore[arg-type]


def test_a_failure_is_archived_with_its_dead_letters_and_taken_back(
    prod: Cluster, failure: Failure, ann: AbstractUser, now: datetime
) -> None:
    result = run(ann, "archive_failure", failure=failure.pk)
    assert (listed(prod), listed(prod, is_archived=True)) == ([], [2, 1, 0])
    assert (listed_failures(prod), listed_failures(prod, is_archived=True)) == (0, 1)
    assert totals(prod, now).dead_count == 0
    assert result.undo is not None
    run(ann, result.undo.action, **result.undo.arguments)
    assert (listed(prod), listed_failures(prod)) == ([2, 1, 0], 1)
    assert [one.action for one in AuditEntry.objects.order_by("number")] == ["archive_failure", "restore_failure"]


def test_a_message_that_dies_later_shows_the_failure_again_with_itself_alone(
    prod: Cluster, failure: Failure, ann: AbstractUser, now: datetime
) -> None:
    run(ann, "archive_failure", failure=failure.pk)
    seed.make_dead_letters(prod, "billing", [dead_message(3)], now=now)
    assert (listed_failures(prod), listed(prod), listed(prod, is_archived=True)) == (1, [3], [2, 1, 0])
    run(ann, "restore_failure", failure=failure.pk)
    assert listed(prod) == [3, 2, 1, 0]


def test_the_index_goes_on_with_what_the_action_left(
    prod: Cluster, failure: Failure, ann: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_marks, "STEP_ROWS", 1)
    monkeypatch.setattr(archive_marks, "STEPS_AT_ONCE", 1)
    run(ann, "archive_failure", failure=failure.pk)
    assert len(listed(prod)) == 2
    assert archive_marks.carry_on() == 2
    assert (listed(prod), ArchiveMark.objects.count()) == ([], 0)


def test_one_dead_letter_is_archived_and_its_failure_stays(prod: Cluster, failure: Failure, ann: AbstractUser) -> None:
    dead = DeadLetter.objects.get(queue_offset=1)
    run(ann, "archive_dead_letter", dead_letter=dead.pk)
    assert (listed(prod), listed_failures(prod)) == ([2, 0], 1)
    run(ann, "restore_dead_letter", dead_letter=dead.pk)
    assert listed(prod) == [2, 1, 0]


def test_a_failure_has_an_owner_and_a_note_and_is_found_by_its_owner(
    prod: Cluster, failure: Failure, ann: AbstractUser
) -> None:
    run(ann, "describe_failure", failure=failure.pk, owner="payments", note="The gateway was down.")
    changed = run(ann, "describe_failure", failure=failure.pk, note="")
    assert (listed_failures(prod, owner="payments"), listed_failures(prod, owner="shop")) == (1, 0)
    assert changed.undo is not None
    run(ann, changed.undo.action, **changed.undo.arguments)
    failure.refresh_from_db()
    assert (failure.owner, failure.note) == ("payments", "The gateway was down.")


@pytest.mark.parametrize("action", ["archive_failure", "restore_failure", "describe_failure"])
def test_who_may_only_look_changes_nothing(prod: Cluster, failure: Failure, action: str) -> None:
    assert run(make_person("bob", Role.VIEWER), action, failure=failure.pk).refusal == Refusal.PERMISSION


@pytest.mark.parametrize(
    ("action", "argument"),
    [("archive_failure", "failure"), ("describe_failure", "failure"), ("archive_dead_letter", "dead_letter")],
)
def test_what_is_of_another_cluster_is_refused(
    prod: Cluster, failure: Failure, ann: AbstractUser, now: datetime, action: str, argument: str
) -> None:
    other = seed.make_cluster("other", now=now)
    seed.make_dead_letters(other, "billing", [dead_message(0)], now=now)
    theirs = {"failure": other.failures.get().pk, "dead_letter": other.dead_letters.get().pk}
    result = run(ann, action, **{argument: theirs[argument]})
    assert result.outcome == Outcome.REFUSED
    assert "prod" in result.reason


def test_what_a_search_finds_is_archived_and_restored_by_the_same_search(
    prod: Cluster, failure: Failure, ann: AbstractUser
) -> None:
    result = run(ann, "archive_dead_letters", group="billing", body='"id": 1')
    (item,) = result.items
    assert result.outcome == Outcome.DONE
    assert item.after is not None
    assert (item.after["messages_selected"], item.after["archived"]) == (1, True)
    assert (listed(prod), listed(prod, is_archived=True)) == ([2, 0], [1])
    assert run(ann, "archive_dead_letters", group="billing", body='"id": 1').outcome == Outcome.REFUSED
    run(ann, "restore_dead_letters", group="billing", body='"id": 1')
    assert listed(prod) == [2, 1, 0]


def test_what_is_found_by_attempts_properties_and_first_sending_is_archived_and_taken_back(
    prod: Cluster, failure: Failure, ann: AbstractUser, now: datetime
) -> None:
    others = [dead_message(7, reconsume_times=0, properties={"tenant": "acme"})]
    seed.make_dead_letters(prod, "billing", others, now=now)
    for which in ({"attempts": 0}, {"user_property": "tenant=acme"}, {"attempts": 0, "born_since": "2000-01-01 00:00"}):
        archived = run(ann, "archive_dead_letters", group="billing", **which)
        assert listed(prod, is_archived=True) == [7]
        restored = undo(ann, archived)
        assert listed(prod, is_archived=True) == []
        undo(ann, restored)
        assert listed(prod, is_archived=True) == [7]
        run(ann, "restore_dead_letters", group="billing")
    empty = run(ann, "archive_dead_letters", group="billing", born_until="2000-01-01 00:00")
    assert empty.outcome == Outcome.REFUSED


def test_what_takes_too_long_to_find_is_not_archived(
    prod: Cluster, failure: Failure, ann: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "FOUND_WITHIN_S", 0.0)
    for action in ("archive_dead_letters", "restore_dead_letters"):
        assert "more narrowly: one failure" in run(ann, action, group="billing", body='"id": 1').reason
    assert listed(prod) == [2, 1, 0]


def test_a_run_takes_so_many_and_says_that_there_may_be_more(
    prod: Cluster, failure: Failure, ann: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_dead_letters, "STEP_ROWS", 1)
    monkeypatch.setattr(archive_dead_letters, "ROWS_MAX", 2)
    (item,) = run(ann, "archive_dead_letters", group="billing", failure=failure.pk).items
    assert item.words == "There may be more: run it again for them."
    assert listed(prod) == [0]
    run(ann, "archive_dead_letters", group="billing", failure=failure.pk)
    assert listed(prod) == []


def undo(ann: AbstractUser, result: Result) -> Result:
    assert result.undo is not None
    return run(ann, result.undo.action, **result.undo.arguments)


def test_archiving_is_taken_back_for_what_the_run_archived_and_nothing_else(
    prod: Cluster, failure: Failure, ann: AbstractUser
) -> None:
    dead = DeadLetter.objects.get(queue_offset=1)
    run(ann, "archive_dead_letters", group="billing", ids=str(dead.pk))
    archived = run(ann, "archive_dead_letters", group="billing", failure=failure.pk)
    assert (listed(prod), listed(prod, is_archived=True)) == ([], [2, 1, 0])
    restored = undo(ann, archived)
    assert (listed(prod), listed(prod, is_archived=True)) == ([2, 0], [1])
    assert undo(ann, archived).outcome == Outcome.REFUSED
    undo(ann, restored)
    assert (listed(prod), listed(prod, is_archived=True)) == ([], [2, 1, 0])


def test_restoring_is_not_taken_back_where_the_filter_would_archive_others_too(
    prod: Cluster, failure: Failure, ann: AbstractUser
) -> None:
    dead = DeadLetter.objects.get(queue_offset=1)
    run(ann, "archive_dead_letters", group="billing", ids=str(dead.pk))
    restored = run(ann, "restore_dead_letters", group="billing", failure=failure.pk)
    assert (restored.outcome, restored.undo) == (Outcome.DONE, None)


def test_restoring_is_taken_back_and_what_died_since_stays(
    prod: Cluster, failure: Failure, ann: AbstractUser, now: datetime
) -> None:
    run(ann, "archive_dead_letters", group="billing", since="2000-01-01 00:00")
    restored = run(ann, "restore_dead_letters", group="billing", since="2000-01-01 00:00")
    later = timezone.now() + timedelta(minutes=1)
    seed.make_dead_letters(
        prod, "billing", [dead_message(3, store_timestamp_ms=round(later.timestamp() * 1000))], now=now
    )
    assert listed(prod) == [3, 2, 1, 0]
    archived = undo(ann, restored)
    assert (listed(prod), listed(prod, is_archived=True)) == ([3], [2, 1, 0])
    undo(ann, archived)
    assert listed(prod) == [3, 2, 1, 0]


def test_what_one_run_of_several_archived_comes_back_alone(
    prod: Cluster, failure: Failure, ann: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_dead_letters, "STEP_ROWS", 1)
    monkeypatch.setattr(archive_dead_letters, "ROWS_MAX", 2)
    first = run(ann, "archive_dead_letters", group="billing")
    run(ann, "archive_dead_letters", group="billing")
    undo(ann, first)
    assert (listed(prod), listed(prod, is_archived=True)) == ([2, 1], [0])
