"""Dead letters sent again by a replay, from the index and from a file, on our broker and on Apache's."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from mqadmin.clusters import models
from mqadmin.deadletters import indexing
from mqadmin.deadletters import tasks as index_tasks
from mqadmin.deadletters.bodies import body_of
from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.observing import polling_cycle
from mqadmin.people.roles import Role
from mqadmin.replays import tasks
from mqadmin.replays.driving import drive_step
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import EntryState, JobState
from tests.journeys.acting import Act, act, cluster, java  # noqa: F401 - fixtures
from tests.journeys.shop import QUEUE_COUNT
from tests.support.failing_group import FailingGroup
from tests.support.progress import committed
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _no_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Index and replays are driven by hand."""
    monkeypatch.setattr(index_tasks.index_dead_letters, "apply_async", lambda **_: None)
    monkeypatch.setattr(tasks.drive_replay, "apply_async", lambda *_, **__: None)


def index(there: models.Cluster) -> None:
    polling_cycle.poll_once(there, timezone.now())
    there.refresh_from_db()
    indexing.index_step(there)


def is_done(job: ReplayJob) -> bool:
    drive_step(job.pk)
    job.refresh_from_db()
    return job.state == JobState.DONE


def replayed(act: Act, group: str, target: str, **which: Any) -> ReplayJob:
    """Returns the replay of these when it has ended."""
    result = act("start_replay", group=group, target=target, skip_replayed="no", **which)
    assert result.outcome == "done", result
    assert result.items[0].after is not None
    job = ReplayJob.objects.get(pk=result.items[0].after["replay"])
    wait_until(lambda: is_done(job), what="the replay's end")
    return job


def test_dead_letters_are_replayed_to_the_failed_group_alone_and_to_the_topic(java, cluster, fresh, act: Act) -> None:
    topic, group, other = fresh("failing"), fresh("failers"), fresh("others")
    producer, failer, bystander, healed = fresh("sender"), fresh("failer"), fresh("bystander"), fresh("healed")
    there = models.Cluster.objects.get(name="there")
    java.producer(producer)
    java.send(producer, topic, body="warm-up-")
    java.consumer(failer, group, topic, fail_until=99, max_reconsume_times=0)
    (sent,) = java.send(producer, topic, tag="paid", keys="order-1", body="bad-")

    def indexed() -> bool:
        index(there)
        return DeadLetter.objects.filter(message_id=sent["msg_id"]).exists()

    wait_until(indexed, what="the dead letter in the index")
    wait_until(lambda: committed(cluster.broker, group, topic, QUEUE_COUNT) == 2, what="the failer's progress")
    java.stop(failer)
    java.consumer(bystander, other, topic)
    java.consumer(healed, group, topic)
    seen_before = len(java.wait_consumed(2, bystander))
    dead = DeadLetter.objects.get(message_id=sent["msg_id"])
    # Nothing came to others; then one to everybody; then what was mended, to the group alone again.
    for target, healed_count, seen_count, body in (
        ("group", 1, seen_before, "bad-0"),
        ("origin", 2, seen_before + 1, "bad-0"),
        ("group", 3, seen_before + 1, "mended"),
    ):
        if body == "mended":
            assert act("mend_dead_letter", dead_letter=dead.pk, body=body).outcome == "done"
        job = replayed(act, group, target, ids=str(dead.pk))
        entry = ReplayEntry.objects.get(job=job)
        assert (entry.state, entry.words) == (EntryState.SENT, "")
        (*_, got) = java.wait_consumed(healed_count, healed)
        assert (got["body"], got["topic"], got["tags"], got["reconsume_times"]) == (body, topic, "paid", 0)
        assert "order-10" in got["keys"].split()
        java.wait_consumed(seen_count, bystander)
        assert len(java.consumed(bystander)) == seen_count
    for name in (bystander, healed, producer):
        java.stop(name)


def test_what_our_own_consumer_fails_on_is_grouped_mended_and_replayed(cluster, fresh, act: Act) -> None:
    topic, group, other = fresh("failing"), fresh("failers"), fresh("others")
    there = models.Cluster.objects.get(name="there")
    with FailingGroup(cluster, topic, group) as failers, FailingGroup(cluster, topic, other) as bystanders:
        bystanders.heal()
        failers.send_and_fail("bad 1", "bad 2")
        bystanders.wait_consumed("bad 1", "bad 2")

        def indexed() -> bool:
            index(there)
            return DeadLetter.objects.filter(group_name=group).count() == 2

        wait_until(indexed, what="the dead letters in the index")
        dead = DeadLetter.objects.filter(group_name=group).select_related("kept")
        rows = {body_of(one, Role.ADMIN).text: one for one in dead}
        assert rows.keys() == {"bad 1", "bad 2"}
        assert {(one.origin_topic, one.tag) for one in rows.values()} == {(topic, "paid")}
        failure = Failure.objects.get(group_name=group)
        assert failure.dead_count == 2
        # Apache's brokers keep no reason, and this group is no listener of the project.
        assert failure.failure_class.rpartition(".")[2] == ("PaymentTimeout" if cluster.name == "ours" else "")
        failers.heal()
        seen = ["bad 1", "bad 2"]
        # The whole failure; then one of it, mended; each to the group alone. In the end to everybody.
        for target, which, bodies in (
            ("group", {"failure": failure.pk}, ("bad 1", "bad 2")),
            ("group", {"ids": str(rows["bad 1"].pk)}, ("mended",)),
            ("origin", {"ids": str(rows["bad 2"].pk)}, ("bad 2",)),
        ):
            if bodies == ("mended",):
                assert act("mend_dead_letter", dead_letter=rows["bad 1"].pk, body="mended").outcome == "done"
            expected = [*failers.consumed, *bodies]
            job = replayed(act, group, target, **which)
            assert (job.sent_count, job.total_count) == (len(bodies), len(bodies))
            failers.wait_consumed_times(expected.count(bodies[-1]), *bodies)
            seen += bodies if target == "origin" else ()
            bystanders.wait_consumed_times(seen.count("bad 2"), "bad 2")
            assert sorted(failers.consumed) == sorted(expected)
            assert sorted(bystanders.consumed) == sorted(seen)


def exported(http: Client, group: str) -> list[dict[str, Any]]:
    """Returns the lines of the export, the first that was sent first."""
    export = http.get(f"/api/v1/clusters/there/dead-letters/export?format=jsonl&group={group}")

    async def whole() -> bytes:
        return b"".join([chunk async for chunk in export.streaming_content])

    return sorted((json.loads(line) for line in async_to_sync(whole)().splitlines()), key=lambda line: line["body"])


def test_a_file_is_replayed_line_by_line_to_the_failed_group_alone_and_to_the_topic(
    java, cluster, fresh, act: Act, admin_client: Client
) -> None:
    topic, group, other = fresh("failing"), fresh("failers"), fresh("others")
    producer, failer, bystander, healed = fresh("sender"), fresh("failer"), fresh("bystander"), fresh("healed")
    there = models.Cluster.objects.get(name="there")
    java.producer(producer)
    java.send(producer, topic, body="warm-up-")
    java.consumer(failer, group, topic, fail_until=99, max_reconsume_times=0)
    ids = {one["msg_id"] for one in java.send(producer, topic, count=3, tag="paid", keys="order-", body="bad-")}

    def indexed() -> bool:
        index(there)
        return ids <= set(DeadLetter.objects.filter(group_name=group).values_list("message_id", flat=True))

    wait_until(indexed, what="the dead letters in the index")
    wait_until(lambda: committed(cluster.broker, group, topic, QUEUE_COUNT) == 4, what="the failer's progress")
    java.stop(failer)
    java.consumer(bystander, other, topic)
    java.consumer(healed, group, topic)
    seen = len(java.wait_consumed(4, bystander))
    lines = [line for line in exported(admin_client, group) if line["message_id"] in ids]
    assert [line["body"] for line in lines] == ["bad-0", "bad-1", "bad-2"]
    # As it was, changed outside, and three that are wrong: the last one died in another cluster.
    lines[1]["body"] = "changed outside"
    lines[2]["cluster"] = "elsewhere"
    content = b"\n".join([json.dumps(lines[0]).encode(), b"{", json.dumps(lines[1]).encode(), b"\xff", b""])
    content += json.dumps(lines[2]).encode()
    answer = admin_client.post("/api/v1/clusters/there/replay-files", content, content_type="application/jsonl")
    assert (answer.status_code, answer.json()["wrong_count"]) == (201, 3)
    for target, healed_count, seen_count in (("group", 2, seen), ("origin", 4, seen + 2)):
        job = replayed(act, group, target, file=answer.json()["id"])
        entries = ReplayEntry.objects.filter(job=job)
        assert dict(entries.values_list("line", "state")) == {
            1: EntryState.SENT,
            2: EntryState.REFUSED,
            3: EntryState.SENT,
            4: EntryState.REFUSED,
            5: EntryState.REFUSED,
        }
        assert all(entry.words for entry in entries.filter(state=EntryState.REFUSED))
        assert (job.total_count, job.sent_count, job.refused_count) == (5, 2, 3)
        got = java.wait_consumed(healed_count, healed)[-2:]
        assert {(one["body"], one["topic"], one["tags"], one["reconsume_times"]) for one in got} == {
            ("bad-0", topic, "paid", 0),
            ("changed outside", topic, "paid", 0),
        }
        java.wait_consumed(seen_count, bystander)
        assert len(java.consumed(bystander)) == seen_count
    for name in (bystander, healed, producer):
        java.stop(name)
