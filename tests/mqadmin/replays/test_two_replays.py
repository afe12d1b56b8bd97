"""What a replay does with entries that it cannot send now: another replay's, hidden ones, those without an answer."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter
from mqadmin.people.masking import read_rules
from mqadmin.replays import sending
from mqadmin.replays.driving import drive_step
from mqadmin.replays.limits import ReplayLimits
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import EntryState, JobState, Target
from tests.mqadmin.replays.conftest import replay_of
from tests.support.replay_gateway import ReplayBroker, Sent

pytestmark = pytest.mark.django_db

LIMITS = ReplayLimits(
    step_s=0.5, batch=3, settle_after_s=0.0, lease_s=60.0, retry_after_s=0.0, attempts_max=4, give_up_after_s=0.0
)
WAITS = ReplayLimits(step_s=5.0, batch=3, retry_after_s=600.0)


def replay_again(job: ReplayJob) -> ReplayJob:
    """Returns a second replay of the same dead letters."""
    return ReplayJob.objects.create(
        cluster=job.cluster,
        identity=f"{job.identity} again",
        group_name=job.group_name,
        selection=job.selection,
        until_id=job.until_id,
        target=job.target,
        rate_per_s=job.rate_per_s,
        stop_percent=0,
        created_at=timezone.now(),
    )


def claimed_by(job: ReplayJob, state: EntryState, dead_letters: list[DeadLetter]) -> None:
    """Leaves entries of a replay in that state, as a process that died does."""
    ReplayEntry.objects.bulk_create(ReplayEntry(job=job, dead_letter=one, state=state) for one in dead_letters)
    # Its counts stay 0: it has no work, so the other one keeps its turn.
    ReplayJob.objects.filter(pk=job.pk).update(state=JobState.PAUSED)


def outcomes(job: ReplayJob) -> list[tuple[str, str]]:
    return list(ReplayEntry.objects.filter(job=job).order_by("pk").values_list("state", "words"))


def drive(job: ReplayJob, limits: ReplayLimits, steps: int = 20) -> None:
    for _ in range(steps):
        drive_step(job.pk, limits)


def test_what_another_replay_is_sending_is_waited_for(silent_cluster: Cluster, scripted: ReplayBroker) -> None:
    first = replay_of(silent_cluster, 1)
    second = replay_again(first)
    claimed_by(first, EntryState.SENDING, list(DeadLetter.objects.all()))
    drive_step(second.pk, LIMITS)
    assert outcomes(second) == [("waiting", f"replay {first.pk} is sending it")]
    ReplayEntry.objects.filter(job=first).update(state=EntryState.SKIPPED)
    drive(second, LIMITS)
    assert outcomes(second) == [("sent", "")]


def test_what_another_replay_may_have_sent_is_skipped_with_these_words(
    silent_cluster: Cluster, scripted: ReplayBroker
) -> None:
    first = replay_of(silent_cluster, 1)
    second = replay_again(first)
    claimed_by(first, EntryState.UNKNOWN, list(DeadLetter.objects.all()))
    drive(second, LIMITS)
    assert outcomes(second) == [("skipped", f"replay {first.pk} may have sent it: unknown")]


def test_entries_that_wait_do_not_hold_up_those_behind_them(silent_cluster: Cluster, scripted: ReplayBroker) -> None:
    first = replay_of(silent_cluster, 6)
    second = replay_again(first)
    # The oldest are sent first.
    claimed_by(first, EntryState.SENDING, list(DeadLetter.objects.order_by("pk")[:3]))
    drive_step(second.pk, WAITS)
    second.refresh_from_db()
    assert (second.sent_count, second.waiting_count) == (3, 3)


def test_sends_without_an_answer_end_after_the_last_attempt(silent_cluster: Cluster, scripted: ReplayBroker) -> None:
    scripted.script = lambda _: Sent.LOST_NOT_THERE
    job = replay_of(silent_cluster, 1)
    drive(job, LIMITS, steps=40)
    assert outcomes(job) == [("refused", "no answer came")]


def test_what_a_broker_reads_only_after_it_was_looked_for_is_not_sent_again(
    silent_cluster: Cluster, scripted: ReplayBroker
) -> None:
    scripted.script = lambda _: Sent.LOST_LATE
    job = replay_of(silent_cluster, 3)
    drive(job, LIMITS)
    assert outcomes(job) == [("sent", "")] * 3
    assert set(scripted.copies().values()) == {1}


def test_a_machine_that_slept_after_the_claim_sends_nothing(
    silent_cluster: Cluster, scripted: ReplayBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept_s = [LIMITS.send_within_s + 1]
    clock = SimpleNamespace(now=lambda: timezone.now() + timedelta(seconds=slept_s[0]))
    monkeypatch.setattr(sending, "timezone", clock)
    job = replay_of(silent_cluster, 2)
    drive_step(job.pk, LIMITS)
    assert (scripted.stored, outcomes(job)) == ([], [("waiting", "")] * 2)
    slept_s[0] = 0
    drive(job, LIMITS)
    assert outcomes(job) == [("sent", "")] * 2


def test_more_than_were_counted_is_not_said_as_missing(silent_cluster: Cluster, scripted: ReplayBroker) -> None:
    job = replay_of(silent_cluster, 3, selected_count=2)
    drive(job, LIMITS)
    job.refresh_from_db()
    assert (job.total_count, job.note) == (3, "")


def test_bodies_that_are_hidden_from_who_started_it_are_skipped(
    silent_cluster: Cluster, scripted: ReplayBroker, settings: object
) -> None:
    settings.MQADMIN_MASKED = read_rules("operator:secret*")  # type: ignore[attr-defined]
    job = replay_of(silent_cluster, 2, target=Target.TOPIC, target_topic="mine")
    ReplayJob.objects.filter(pk=job.pk).update(selection={**job.selection, "role": "operator"})
    DeadLetter.objects.filter(pk=DeadLetter.objects.order_by("-pk")[0].pk).update(origin_topic="secret-orders")
    drive(job, LIMITS)
    assert sorted(outcomes(job)) == [("sent", ""), ("skipped", "its body is hidden from who started the replay")]
