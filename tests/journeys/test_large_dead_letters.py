"""A dead letter of 4 MiB all the way: indexed, shown, mended, exported, sent back as a file, replayed, consumed."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import asyncio
import hashlib
import json
import random

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from mqadmin.clusters import models
from mqadmin.deadletters import indexing
from mqadmin.deadletters import tasks as index_tasks
from mqadmin.deadletters.models import DeadLetter, MendedCopy
from mqadmin.observing import polling_cycle
from mqadmin.replays import tasks
from mqadmin.replays.driving import drive_step
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import EntryState, JobState
from remoting.client.producer import Producer
from remoting.wire.limits import BODY_BYTES_MAX
from tests.journeys.acting import Act, act, java  # noqa: F401 - fixtures
from tests.journeys.conftest import Cluster
from tests.support.progress import committed
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]

# Some brokers count properties and head in, too.
LARGE = BODY_BYTES_MAX - 64 * 1024


@pytest.fixture(params=["ours", "apache"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Ours and Apache's newest: on its oldest the largest bodies would take minutes more."""
    return request.getfixturevalue(f"{request.param}_rocketmq")


@pytest.fixture(autouse=True)
def _no_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Index and replays are driven by hand."""
    monkeypatch.setattr(index_tasks.index_dead_letters, "apply_async", lambda **_: None)
    monkeypatch.setattr(tasks.drive_replay, "apply_async", lambda *_, **__: None)


def is_done(job: ReplayJob) -> bool:
    drive_step(job.pk)
    job.refresh_from_db()
    return job.state == JobState.DONE


def send(namesrv: str, topic: str, body: bytes) -> str:
    async def send() -> str:
        producer = Producer(namesrv, "senders", timeout_ms=60_000)
        await producer.start()
        try:
            return (await producer.send(topic, body)).message_id
        finally:
            await producer.close()

    return asyncio.run(send())


def sha1(body: bytes) -> str:
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()


def test_a_dead_letter_of_4_mib_goes_all_the_way(java, cluster, fresh, act: Act, admin_client: Client) -> None:
    topic, group = fresh("failing"), fresh("failers")
    failer, healed, producer = fresh("failer"), fresh("healed"), fresh("sender")
    there = models.Cluster.objects.get(name="there")
    java.producer(producer)
    java.send(producer, topic, body="warm-up-")
    java.consumer(failer, group, topic, fail_until=99, max_reconsume_times=0)
    original = {"fixed": False, "pad": random.Random(7).randbytes(LARGE // 2 - 32).hex()}
    body = json.dumps(original, separators=(",", ":")).encode()
    assert LARGE - 100 < len(body) <= LARGE
    message_id = send(cluster.namesrv, topic, body)

    def indexed() -> bool:
        polling_cycle.poll_once(there, timezone.now())
        there.refresh_from_db()
        indexing.index_step(there)
        return DeadLetter.objects.filter(message_id=message_id).exists()

    wait_until(indexed, 120, "the dead letter in the index")
    wait_until(lambda: committed(cluster.broker, group, topic, 4) == 2, what="the progress past both messages")
    java.stop(failer)
    java.consumer(healed, group, topic)
    dead = DeadLetter.objects.select_related("kept").get(message_id=message_id)
    assert (dead.body_bytes, dead.kept.body) == (len(body), None)
    page = f"/clusters/there/deadletters/{dead.pk}/"
    assert "There is more; this is its beginning." in admin_client.get(page).content.decode()
    assert "can be edited here" in admin_client.get(f"{page}mend/").content.decode()
    patch = json.dumps([{"op": "replace", "path": "/fixed", "value": True}])
    assert act("patch_dead_letters", group=group, patch=patch, picks=str(dead.pk)).outcome == "done"
    assert "Mended" in admin_client.get(page).content.decode()
    mended = bytes(MendedCopy.objects.get(pk=dead.pk).body)
    assert json.loads(mended) == original | {"fixed": True}

    def replayed(**how: object) -> None:
        result = act("start_replay", group=group, skip_replayed="no", **how)
        assert result.outcome == "done", result
        assert result.items[0].after is not None
        job = ReplayJob.objects.get(pk=result.items[0].after["replay"])
        wait_until(lambda: is_done(job), 120, "the replay's end")
        assert [(one.state, one.words) for one in ReplayEntry.objects.filter(job=job)] == [(EntryState.SENT, "")]

    replayed(ids=str(dead.pk))
    (*_, got) = java.wait_consumed(1, healed, within_s=120)
    assert (got["sha1"], got["topic"], got["reconsume_times"]) == (sha1(mended), topic, 0)

    # The original is kept since it was mended: the export has it, and it is changed outside.
    export = admin_client.get(f"/api/v1/clusters/there/dead-letters/export?format=jsonl&group={group}")

    async def whole() -> bytes:
        return b"".join([chunk async for chunk in export.streaming_content])

    lines = [json.loads(one) for one in async_to_sync(whole)().splitlines()]
    (line,) = [one for one in lines if one["message_id"] == message_id]
    assert (line["body"], line["body_encoding"]) == (body.decode(), "text")
    line["body"] = line["body"].replace('"fixed":false', '"fixed":null')
    answer = admin_client.post(
        "/api/v1/clusters/there/replay-files", json.dumps(line).encode(), content_type="application/jsonl"
    )
    assert (answer.status_code, answer.json()["wrong_count"]) == (201, 0)
    replayed(file=answer.json()["id"])
    (*_, got) = java.wait_consumed(2, healed, within_s=120)
    assert got["sha1"] == sha1(line["body"].encode())
    for name in (healed, producer):
        java.stop(name)
