"""A replay that needs it waits for a second person; what nobody has looked at is not sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser, Group
from django.utils import timezone

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter, MendedCopy
from mqadmin.people.roles import Role
from mqadmin.replays import approval, ledger, start_replay, tasks
from mqadmin.replays.choosing import Chosen
from mqadmin.replays.dry_run import DryRun
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import JobState, Target
from tests.support import console_rows as seed
from tests.support.callers import caller
from tests.support.dead_letter_brokers import dead_message

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def dry_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is neither a broker nor Redis."""

    def found(_cluster: Cluster, _group: str, selection: Any, **_: Any) -> DryRun:
        return DryRun(
            selection=selection,
            until_id=1000,
            target=Target.GROUP,
            chosen=Chosen(count=1, origins=("orders",), sample=(), replayed_count=0, large_count=0, homeless_count=0),
            topics=("%RETRY%billing",),
        )

    monkeypatch.setattr(start_replay, "dry_run", found)
    monkeypatch.setattr(tasks.drive_replay, "apply_async", lambda *_, **__: None)


@pytest.fixture
def prod(db: None) -> Cluster:
    return seed.make_cluster("prod", now=timezone.now())


@pytest.fixture
def dead(prod: Cluster) -> DeadLetter:
    seed.make_dead_letters(prod, "billing", [dead_message(0), dead_message(1)], now=timezone.now())
    return DeadLetter.objects.get(queue_offset=0)


@pytest.fixture
def bob(django_user_model: type[AbstractUser]) -> AbstractUser:
    bob = django_user_model.objects.create_user("bob")
    bob.groups.add(Group.objects.get_or_create(name=Role.OPERATOR)[0])
    return bob


def mend(dead: DeadLetter, by: str) -> None:
    MendedCopy.objects.create(dead_letter=dead, body=b"{}", properties={}, mended_by=by, mended_at=timezone.now())


def start(person: Any, **values: Any) -> ReplayJob:
    result = runner.run(caller(person), "start_replay", "prod", {"group": "billing", **values})
    assert isinstance(result, Result)
    assert result.outcome == "done", result
    return ReplayJob.objects.get()


def say(person: Any, verb: str, job: ReplayJob) -> Result:
    result = runner.run(caller(person), verb, "prod", {"replay": str(job.pk)})
    assert isinstance(result, Result)
    return result


@pytest.mark.parametrize(
    ("setting", "is_mended", "state"),
    [
        ("off", True, JobState.RUNNING),
        ("mended", False, JobState.RUNNING),
        ("mended", True, JobState.ASKED),
        ("all", False, JobState.ASKED),
    ],
)
def test_what_needs_approval_is_a_setting(
    dead: DeadLetter, ann: AbstractUser, settings: Any, setting: str, is_mended: bool, state: JobState
) -> None:
    settings.MQADMIN_REPLAY_APPROVAL = setting
    if is_mended:
        mend(dead, "carl")
    job = start(ann, ids=str(dead.pk))
    assert job.state == state
    assert ledger.with_work().filter(pk=job.pk).exists() is (state == JobState.RUNNING)


def test_a_copy_that_is_not_picked_needs_no_approval(dead: DeadLetter, ann: AbstractUser, settings: Any) -> None:
    settings.MQADMIN_REPLAY_APPROVAL = "mended"
    mend(dead, "carl")
    assert start(ann, ids=str(DeadLetter.objects.get(queue_offset=1).pk)).state == JobState.RUNNING


def test_another_person_approves_and_the_audit_says_who(
    dead: DeadLetter, ann: AbstractUser, bob: AbstractUser, settings: Any
) -> None:
    settings.MQADMIN_REPLAY_APPROVAL = "all"
    job = start(ann)
    own = say(ann, "approve_replay", job)
    assert (own.refusal, own.reason) == (Refusal.RULE, "You started it: another person has to approve it.")
    assert say(bob, "approve_replay", job).outcome == "done"
    job.refresh_from_db()
    assert (job.state, job.approved_by) == (JobState.RUNNING, "bob")
    assert AuditEntry.objects.filter(action="approve_replay").values_list("actor", "outcome").order_by("pk")[1] == (
        "bob",
        "done",
    )
    assert say(bob, "approve_replay", job).refusal == Refusal.RULE


def test_whoever_mended_what_it_sends_does_not_approve_it(
    dead: DeadLetter, ann: AbstractUser, bob: AbstractUser, settings: Any
) -> None:
    settings.MQADMIN_REPLAY_APPROVAL = "mended"
    mend(dead, "bob")
    job = start(ann)
    assert "You mended something" in say(bob, "approve_replay", job).reason


def test_a_refused_replay_is_cancelled_and_can_be_started_anew(
    dead: DeadLetter, ann: AbstractUser, bob: AbstractUser, settings: Any
) -> None:
    settings.MQADMIN_REPLAY_APPROVAL = "all"
    job = start(ann)
    assert say(ann, "resume_replay", job).refusal == Refusal.RULE
    assert say(bob, "refuse_replay", job).outcome == "done"
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert job.ended_at is not None
    start_again = runner.run(caller(ann), "start_replay", "prod", {"group": "billing"})
    assert isinstance(start_again, Result)
    assert start_again.outcome == "done"


def test_what_is_mended_after_the_approval_is_not_sent(
    dead: DeadLetter, ann: AbstractUser, bob: AbstractUser, settings: Any
) -> None:
    settings.MQADMIN_REPLAY_APPROVAL = "all"
    job = start(ann)
    say(bob, "approve_replay", job)
    job.refresh_from_db()
    ids = list(DeadLetter.objects.values_list("pk", flat=True))
    mend(dead, "ann")
    assert approval.mended_since(job, [*ids, None]) == {dead.pk}
    assert job.approved_at is not None
    MendedCopy.objects.update(mended_at=job.approved_at - timedelta(seconds=1))
    assert approval.mended_since(job, ids) == set()
    settings.MQADMIN_REPLAY_APPROVAL = "off"
    MendedCopy.objects.update(mended_at=timezone.now())
    assert approval.mended_since(job, ids) == set()
