"""A replay to a group of our own consumer that fails on everything again: it stops by itself before any is dead."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import pytest
from django.contrib.auth.models import AbstractUser

from mqadmin.action_runs import runner
from mqadmin.clusters.models import Cluster
from mqadmin.replays import tasks
from mqadmin.replays.driving import drive_step
from mqadmin.replays.limits import ReplayLimits
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import JobState, Target
from mqadmin.retries.indexing import index_step
from tests.journeys.replay_stage import broker, there  # noqa: F401 - fixtures
from tests.mqadmin.replays.test_driving import make_dead, make_job
from tests.support.callers import caller
from tests.support.failing_group import FailingGroup
from tests.support.our_broker import OurBroker
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]

MESSAGES = 400
# 20 s for all: the first failures are known long before.
RATE = 20
STEP = ReplayLimits(step_s=1.0)


def wait_for(job: ReplayJob, state: JobState) -> None:
    """Drives it and reads the retries, as workers do, until it is in that state: what fails later is not counted."""

    def is_so() -> bool:
        drive_step(job.pk, STEP)
        job.refresh_from_db()
        if job.state == state:
            return True
        index_step(job.cluster)
        return False

    wait_until(is_so, 120, f"the replay {state}")


def test_a_replay_whose_messages_fail_again_stops_while_it_runs(
    broker: OurBroker, there: Cluster, admin_user: AbstractUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "wake", lambda _: None)
    with FailingGroup(broker, "orders", "billing", retries=16) as group:
        make_dead(there, MESSAGES, "orders")
        job = make_job(there, target=Target.GROUP, rate_per_s=RATE)
        wait_for(job, JobState.STOPPED)
        assert 0 < job.sent_count < MESSAGES
        assert job.failed_count * 100 > job.sent_count * job.stop_percent
        assert job.dead_again_count == 0
        assert f"{job.failed_count} of {job.sent_count} sent messages failed again" in job.problem
        entries = ReplayEntry.objects.filter(job=job)
        failed = set(entries.filter(failed_attempt__gte=1).values_list("message_id", flat=True))
        assert len(failed) == job.failed_count
        assert failed <= set(group.failed)

        def all_is_read() -> bool:
            index_step(job.cluster)
            job.refresh_from_db()
            return job.failed_count == job.sent_count

        # What is read of them after it goes on would count against it once more.
        wait_until(all_is_read, what="the failures of all that was sent")
        group.heal()
        runner.run(caller(admin_user), "resume_replay", "there", {"replay": str(job.pk)})
        ReplayJob.objects.filter(pk=job.pk).update(rate_per_s=1000)
        wait_for(job, JobState.DONE)
        assert job.sent_count == MESSAGES
        group.wait_consumed(*entries.values_list("message_id", flat=True))
