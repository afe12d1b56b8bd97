"""The lists of replays and of ledgers: served by indexes; old ones removed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter
from mqadmin.replays import retention, selectors
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import EntryState, JobState, Target
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message


@pytest.fixture
def job(db: None) -> ReplayJob:
    now = timezone.now()
    return ReplayJob.objects.create(
        cluster=seed.make_cluster("there", now=now),
        identity="x",
        group_name="billing",
        until_id=0,
        target=Target.GROUP,
        rate_per_s=1,
        stop_percent=5,
        created_at=now,
    )


@pytest.mark.sqlite
def test_lists_are_served_by_indexes(job: ReplayJob) -> None:
    def plan(rows: object) -> str:
        return rows.explain()  # type: ignore[attr-defined,no-any-return]

    of_cluster = selectors.replays(job.cluster).rows.order_by("-created_at", "-pk")[:50]
    assert "mq_replay_latest" in plan(of_cluster)
    of_group = selectors.replays(job.cluster, "billing").rows.order_by("-created_at", "-pk")[:50]
    assert "mq_replay_latest_of_group" in plan(of_group)
    for state, index in (
        ("", "latest"),
        ("sent", "in_state"),
        (selectors.FAILED, "failed"),
        (selectors.DEAD_AGAIN, "dead_again"),
    ):
        rows = selectors.ledger(job, state).rows.filter(pk__lt=9).order_by("-pk")[:50]
        assert f"mq_replay_entry_{index}" in plan(rows), state
        assert "TEMP B-TREE" not in plan(rows), state


def test_what_ended_long_ago_is_removed_with_its_ledger(job: ReplayJob) -> None:
    now = timezone.now()
    ReplayEntry.objects.create(job=job, message_id="m", state=EntryState.SENT)
    assert retention.remove_old(now) == 0
    ReplayJob.objects.update(state=JobState.DONE, ended_at=now - timedelta(days=91))
    assert retention.remove_old(now) == 1
    assert not ReplayEntry.objects.exists()


def test_an_entry_outlives_its_dead_letter(job: ReplayJob) -> None:
    seed.make_dead_letters(Cluster.objects.get(), "billing", [dead_message(0)], now=timezone.now())
    entry = ReplayEntry.objects.create(job=job, dead_letter=DeadLetter.objects.get(), message_id="m")
    DeadLetter.objects.all().delete()
    entry.refresh_from_db()
    assert (entry.dead_letter_id, entry.message_id) == (None, "m")
