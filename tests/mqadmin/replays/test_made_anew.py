"""A topic that is deleted, made anew and written to while a replay looks for outcomes: no message is sent twice."""

from __future__ import annotations

import pytest

from mqadmin.clusters.models import Cluster
from mqadmin.replays import driving
from mqadmin.replays.driving import drive_step
from mqadmin.replays.limits import ReplayLimits
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import JobState
from tests.mqadmin.replays.conftest import replay_of
from tests.support.replay_gateway import QUEUES, ReplayBroker, Sent

pytestmark = pytest.mark.django_db

TOPIC = "orders"
MESSAGES, BEFORE = 4, 3
LIMITS = ReplayLimits(step_s=0.5, settle_after_s=0.0, look_again_after_s=0.0, lease_s=60.0, retry_after_s=0.0)
ANEW = "the topic was deleted and made anew meanwhile"


class Died(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def job(silent_cluster: Cluster, scripted: ReplayBroker, monkeypatch: pytest.MonkeyPatch) -> ReplayJob:
    """A replay whose process died after it had claimed; the topic had messages of others before."""
    for queue_id in range(QUEUES):
        scripted.grow(TOPIC, queue_id, BEFORE)
    scripted.script = lambda _: Sent.LOST_THERE
    job = replay_of(silent_cluster, MESSAGES)

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(driving._Step, "_write", die)
        with pytest.raises(Died):
            drive_step(job.pk, LIMITS)
    scripted.script = lambda _: Sent.STORED
    return job


def end(job: ReplayJob) -> dict[str, int]:
    """Drives it to its end; returns how many entries are in each state."""
    while job.state != JobState.DONE:
        drive_step(job.pk, LIMITS)
        job.refresh_from_db()
    return {"sent": job.sent_count, "unknown": job.unknown_count}


def test_what_is_still_there_is_found_behind_the_message_that_was_last(job: ReplayJob, scripted: ReplayBroker) -> None:
    scripted.grow(TOPIC, 0, 5)
    assert end(job) == {"sent": MESSAGES, "unknown": 0}
    assert set(scripted.copies().values()) == {1}


@pytest.mark.parametrize("count", [0, BEFORE - 1, BEFORE, BEFORE + 1, 50])
def test_a_topic_that_was_made_anew_leaves_the_outcome_unknown_however_far_it_has_grown(
    job: ReplayJob, scripted: ReplayBroker, count: int
) -> None:
    scripted.make_anew(TOPIC, [count] * QUEUES)
    assert end(job) == {"sent": 0, "unknown": MESSAGES}
    assert set(ReplayEntry.objects.values_list("words", flat=True)) == {ANEW}
    assert set(scripted.copies().values()) == {1}


def test_what_was_certainly_not_sent_to_a_topic_that_stayed_is_sent(
    silent_cluster: Cluster, scripted: ReplayBroker
) -> None:
    for queue_id in range(QUEUES):
        scripted.grow(TOPIC, queue_id, BEFORE)
    told: set[int] = set()

    def first_lost(entry: int) -> Sent:
        is_first = entry not in told
        told.add(entry)
        return Sent.LOST_NOT_THERE if is_first else Sent.STORED

    scripted.script = first_lost
    job = replay_of(silent_cluster, MESSAGES)
    assert end(job) == {"sent": MESSAGES, "unknown": 0}
    assert set(scripted.copies().values()) == {1}
