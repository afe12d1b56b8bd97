"""The rate of a replay over whole steps, by its own clock: what writing, answers and hand-over cost is caught up."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from mqadmin.clusters.models import Cluster
from mqadmin.replays import ledger
from mqadmin.replays.driving import Left, drive_step
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.pacing import CATCH_UP_S
from tests.mqadmin.replays.conftest import replay_of
from tests.support.replay_gateway import ReplayBroker

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

# From a step that ends to the next one that a worker begins.
HAND_OVER_S = 0.05
WINDOW_S = 10.0


@pytest.fixture
def slow(scripted: ReplayBroker, monkeypatch: pytest.MonkeyPatch) -> ReplayBroker:
    """A broker that answers late now and then, and a database whose transactions take time."""
    chance = random.Random(11)
    held = ledger.held

    @contextmanager
    def held_slowly(job_id: int, token: str, *, lease_s: float = ledger.LEASE_S) -> Iterator[None]:
        with held(job_id, token, lease_s=lease_s):
            yield
        scripted.clock.now_s += chance.uniform(0.005, 0.08)

    monkeypatch.setattr(ledger, "held", held_slowly)
    scripted.send_s = lambda: chance.uniform(0.002, 0.03)
    return scripted


def drive(job: ReplayJob, broker: ReplayBroker, *, until_s: float) -> bool:
    """Drives it, a step at a time as a worker does; returns whether there is more to send."""
    behind_s = 0.0
    while broker.clock.now_s < until_s:
        step = drive_step(job.pk, behind_s=behind_s)
        if step.left != Left.NOW:
            return False
        broker.clock.now_s += HAND_OVER_S
        behind_s = step.behind_s + HAND_OVER_S
    return True


def drive_in_turn(jobs: Iterable[ReplayJob], broker: ReplayBroker, *, until_s: float) -> None:
    """Drives them as a worker with one task at a time does: what goes on takes its place behind the others."""
    waiting = deque((job.pk, broker.clock.now_s) for job in jobs)
    while waiting and broker.clock.now_s < until_s:
        job_id, since_s = waiting.popleft()
        broker.clock.now_s += HAND_OVER_S
        step = drive_step(job_id, behind_s=broker.clock.now_s - since_s)
        if step.left == Left.NOW:
            waiting.append((job_id, broker.clock.now_s - step.behind_s))


def sent_within(broker: ReplayBroker, begin_s: float, end_s: float) -> int:
    return sum(begin_s <= at_s < end_s for _, at_s in broker.stored)


@pytest.mark.parametrize("rate", [3, 50, 300])
def test_the_rate_is_held_within_5_percent_over_all_and_in_every_ten_seconds(
    silent_cluster: Cluster, slow: ReplayBroker, rate: int
) -> None:
    job = replay_of(silent_cluster, rate * 25, rate_per_s=rate)
    began_s = slow.clock.now_s
    assert not drive(job, slow, until_s=60.0)
    moments = sorted(at_s for _, at_s in slow.stored)
    assert len(moments) == rate * 25
    assert len(moments) / (moments[-1] - began_s) == pytest.approx(rate, rel=0.05)
    for begin_s in (began_s, began_s + 5.0, began_s + 12.5):
        # One more or less is where the window begins.
        assert sent_within(slow, begin_s, begin_s + WINDOW_S) == pytest.approx(rate * WINDOW_S, rel=0.05, abs=1)


def test_a_rate_that_is_changed_under_way_is_held_from_then_on(silent_cluster: Cluster, slow: ReplayBroker) -> None:
    job = replay_of(silent_cluster, 2000, rate_per_s=100)
    assert drive(job, slow, until_s=10.0)
    ReplayJob.objects.filter(pk=job.pk).update(rate_per_s=20)
    changed_s = slow.clock.now_s
    assert drive(job, slow, until_s=changed_s + 3 * WINDOW_S)
    assert sent_within(slow, 0.0, changed_s) == pytest.approx(100 * changed_s, rel=0.05)
    assert sent_within(slow, changed_s, changed_s + 2 * WINDOW_S) == pytest.approx(20 * 2 * WINDOW_S, rel=0.05)


def test_three_replays_of_one_worker_hold_their_rates_each(silent_cluster: Cluster, slow: ReplayBroker) -> None:
    rates = (50, 20, 5)
    jobs = [replay_of(silent_cluster, rate * 30, rate_per_s=rate) for rate in rates]
    began_s = slow.clock.now_s
    drive_in_turn(jobs, slow, until_s=began_s + 3 * WINDOW_S)
    of_entry = dict(ReplayEntry.objects.values_list("pk", "job_id"))
    for job in jobs:
        moments = [at_s for entry, at_s in slow.stored if of_entry[entry] == job.pk]
        for begin_s in (began_s, began_s + 6.0, began_s + 2 * WINDOW_S):
            sent = sum(begin_s <= at_s < begin_s + WINDOW_S for at_s in moments)
            # What is caught up after a turn may lie on the other side of where a window begins.
            allowed = max(1.0, job.rate_per_s * CATCH_UP_S)
            assert sent == pytest.approx(job.rate_per_s * WINDOW_S, rel=0.05, abs=allowed)
