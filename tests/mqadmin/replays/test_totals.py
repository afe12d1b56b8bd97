"""Whatever becomes of each message, whoever interferes: one outcome each, totals that add up, nothing sent twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter
from mqadmin.replays import driving, ledger
from mqadmin.replays.driving import drive_step
from mqadmin.replays.limits import ReplayLimits
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import EntryState, JobState
from tests.mqadmin.replays.conftest import replay_of
from tests.support.replay_gateway import Reads, ReplayBroker, Sent

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

MESSAGES = 8
LIMITS = ReplayLimits(
    step_s=0.5, batch=3, settle_after_s=0.0, lease_s=60.0, retry_after_s=0.0, attempts_max=4, give_up_after_s=0.0
)
STEPS_MAX = 200
# Between two steps, besides nothing: what people, the index and the end of a process do.
HAPPENS = ("pause", "cancel", "remove", "archive", "die", "nothing")


class Died(Exception):
    """Stands for the end of the process."""


@contextmanager
def undone() -> Iterator[None]:
    """Leaves nothing in the database: an example begins where the one before did."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def check(job: ReplayJob, broker: ReplayBroker) -> None:
    """Raises where counts, entries and what is stored contradict each other."""
    job.refresh_from_db()
    entries = dict(ReplayEntry.objects.filter(job=job).values_list("pk", "state"))
    states = Counter(entries.values())
    assert {one: states[one] for one in EntryState} == {one: getattr(job, f"{one.value}_count") for one in EntryState}
    assert states.total() == job.total_count
    copies = broker.copies()
    assert all(copies[pk] == 1 for pk, state in entries.items() if state == EntryState.SENT)
    never = (EntryState.WAITING, EntryState.SKIPPED, EntryState.REFUSED)
    assert all(copies[pk] == 0 for pk, state in entries.items() if state in never)
    assert max(copies.values(), default=0) <= 1


@given(
    scripts=st.lists(st.lists(st.sampled_from(Sent), max_size=5), min_size=MESSAGES, max_size=MESSAGES),
    happenings=st.lists(st.sampled_from(HAPPENS), max_size=6),
    reads=st.sampled_from(Reads),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_totals_add_up_whatever_becomes_of_each_message(
    silent_cluster: Cluster,
    scripted: ReplayBroker,
    monkeypatch: pytest.MonkeyPatch,
    scripts: list[list[Sent]],
    happenings: list[str],
    reads: Reads,
) -> None:
    with undone():
        job = replay_of(silent_cluster, MESSAGES)
        told: defaultdict[int, Iterator[Sent]] = defaultdict(lambda: iter(scripts[len(told)]))
        scripted.script = lambda entry: next(told[entry], Sent.STORED)
        scripted.reads = reads
        scripted.stored.clear()
        scripted.queues_held.clear()
        scripted.unread.clear()
        for happening in happenings:
            happen(happening, job, monkeypatch)
            check(job, scripted)
        ReplayJob.objects.filter(pk=job.pk, state=JobState.PAUSED).update(state=JobState.RUNNING)
        for _ in range(STEPS_MAX):
            drive_step(job.pk, LIMITS)
            check(job, scripted)
            if not ledger.with_work().filter(pk=job.pk).exists():
                break
        assert job.state in (JobState.DONE, JobState.CANCELLED)
        assert (job.waiting_count, job.sending_count) == (0, 0)
        if reads == Reads.ALL:
            assert job.unknown_count == 0


def happen(what: str, job: ReplayJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets it happen, and the job be driven for a step."""
    running = ReplayJob.objects.filter(pk=job.pk)
    match what:
        case "pause":
            running.filter(state=JobState.RUNNING).update(state=JobState.PAUSED)
        case "cancel":
            running.exclude(state=JobState.DONE).update(state=JobState.CANCELLED)
        case "remove":
            DeadLetter.objects.order_by("-pk")[0].delete()
        case "archive":
            DeadLetter.objects.filter(pk=DeadLetter.objects.order_by("pk")[0].pk).update(archived_at=timezone.now())
        case "die":
            with monkeypatch.context() as patched:
                patched.setattr(driving._Step, "_write", _die)
                try:
                    drive_step(job.pk, LIMITS)
                except Died:
                    pass
            return
    drive_step(job.pk, LIMITS)


def _die(*_: object) -> None:
    raise Died
