"""Replays by REST: the list, one, and its ledger."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from mqadmin.clusters.models import Cluster
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import EntryState
from tests.support import console_rows as seed


@pytest.fixture
def job(cluster: Cluster, now: datetime) -> ReplayJob:
    job = seed.make_replay(cluster, now=now, total_count=3, sent_count=2, unknown_count=1)
    ReplayEntry.objects.bulk_create(
        ReplayEntry(job=job, message_id=f"m{number}", state=state)
        for number, state in enumerate((EntryState.SENT, EntryState.UNKNOWN, EntryState.SENT))
    )
    return job


def test_replays_are_read_with_their_ledger_page_by_page(http: Client, job: ReplayJob) -> None:
    (listed,) = http.get("/api/v1/clusters/local/replays?group=billing").json()["items"]
    assert listed == http.get(f"/api/v1/clusters/local/replays/{job.pk}").json()
    assert (listed["total_count"], listed["sent_count"], listed["unknown_count"]) == (3, 2, 1)
    entries = f"/api/v1/clusters/local/replays/{job.pk}/entries"
    first = http.get(f"{entries}?limit=2").json()
    second = http.get(f"{entries}?limit=2&cursor={first['next_cursor']}").json()
    assert [one["message_id"] for one in (*first["items"], *second["items"])] == ["m2", "m1", "m0"]
    assert [one["message_id"] for one in http.get(f"{entries}?state=unknown").json()["items"]] == ["m1"]
    assert http.get("/api/v1/clusters/local/replays/999").status_code == 404


def test_a_ledger_says_by_which_key_a_message_is_found_and_whether_the_group_is_past_it(
    http: Client, cluster: Cluster, job: ReplayJob, now: datetime
) -> None:
    billing = seed.make_group(cluster, "billing", now=now)
    seed.make_queue_offset(billing, "%RETRY%billing", 0, now=now, committed_offset=7)
    for number, (state, place) in enumerate(
        ((EntryState.SENT, 6), (EntryState.SENT, 7), (EntryState.WAITING, None), (EntryState.SENT, None))
    ):
        ReplayEntry.objects.create(
            job=job,
            message_id=f"n{number}",
            state=state,
            topic="%RETRY%billing",
            broker_name="broker-a",
            queue_id=0,
            queue_offset=place,
            new_id="id" if place is not None else "",
        )
    entries = http.get(f"/api/v1/clusters/local/replays/{job.pk}/entries").json()["items"][:4]
    assert [one["group_is_past"] for one in entries] == [None, None, False, True]
    keys = [f"replay-{job.token}-{one['id']}" for one in entries]
    assert [one["lookup_key"] for one in entries] == [keys[0], "", *keys[2:]]


def test_an_entry_says_what_became_of_it(http: Client, job: ReplayJob, now: datetime) -> None:
    entry = ReplayEntry.objects.filter(job=job, message_id="m2")
    later = now + timedelta(hours=1)
    entries = f"/api/v1/clusters/local/replays/{job.pk}/entries"

    def told() -> list[object]:
        one = http.get(entries).json()["items"][0]
        return [one["became"], one["failed_attempt"], one["retry_at"] is not None]

    assert told() == ["not_known", None, False]
    entry.update(failed_attempt=2, retry_at=later)
    assert told() == ["retrying", 2, True]
    assert [one["message_id"] for one in http.get(f"{entries}?state=failed").json()["items"]] == ["m2"]
    entry.update(dead_again_id=1)
    assert told() == ["dead_again", 2, True]
    assert http.get(f"{entries}?state=unknown").json()["items"][0]["became"] is None


def test_a_ledger_is_exported_and_one_that_is_not_there_is_not_found(http: Client, job: ReplayJob) -> None:
    answer = http.get(f"/api/v1/clusters/local/replays/{job.pk}/entries?format=csv")
    assert answer.status_code == 200

    async def whole() -> bytes:
        return b"".join([chunk async for chunk in answer.streaming_content])

    assert "m1" in async_to_sync(whole)().decode()
    for missing in (job.pk + 1, 10**21):
        assert http.get(f"/api/v1/clusters/local/replays/{missing}/entries?format=csv").status_code == 404
