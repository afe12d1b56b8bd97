"""Replays of files, driven against our broker: one outcome a line, whatever the line is, and the counts add up."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter, KeptMessage
from mqadmin.replay_files.models import FileMessage, ReplayFile
from mqadmin.replay_files.storing import remove, store
from mqadmin.replays import choosing, freezing
from mqadmin.replays.driving import drive_step
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.sending import Sender
from mqadmin.replays.states import JobState
from remoting.wire.properties import Property
from tests.mqadmin.replays.test_driving import (  # noqa: F401 - fixtures
    LIMITS,
    Died,
    bodies,
    broker,
    drive_until,
    finish,
    make_dead,
    make_job,
    states,
    there,
    topic,
)
from tests.support.our_broker import OurBroker
from tests.support.reading import all_messages

pytestmark = [pytest.mark.journey, pytest.mark.django_db]


def line_of(dead: DeadLetter, **fields: Any) -> dict[str, Any]:
    """A line as the export writes it."""
    kept = KeptMessage.objects.get(pk=dead.pk)
    return {
        "cluster": "there",
        "group": dead.group_name,
        "message_id": dead.message_id,
        "offset_message_id": dead.offset_message_id,
        "origin_topic": dead.origin_topic,
        "properties": kept.properties,
        "body": bytes(kept.body or b"").decode(),
        "body_encoding": "absent" if kept.body is None else "text",
        **fields,
    }


def take(cluster: Cluster, *lines: Any) -> ReplayFile:
    content = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    return store(cluster, "dead.jsonl", [content], by="ann")[0]


def replay(cluster: Cluster, file: ReplayFile, **values: object) -> ReplayJob:
    return finish(make_job(cluster, selection={"file": file.pk}, **values))


def test_each_line_has_one_outcome_and_the_rest_goes_on(broker: OurBroker, there: Cluster, topic: str) -> None:
    same, changed, own, _ = make_dead(there, 4, topic)
    unknown = {"group": "billing", "origin_topic": topic, "body": "from nowhere", "properties": {"UNIQ_KEY": "u"}}
    file = take(
        there,
        line_of(same),
        line_of(changed, body="mended outside"),
        line_of(own, body="", body_encoding="absent"),
        unknown,
        b"{",
        {**unknown, "group": "other"},
        {**unknown, "origin_topic": "gone"},
        line_of(same),
    )
    job = replay(there, file)
    assert states(job) == {"sent": 4, "refused": 3}
    outcomes = {entry.line: entry.words for entry in ReplayEntry.objects.filter(job=job)}
    assert {line for line, words in outcomes.items() if not words} == {1, 2, 3, 4}
    assert "not the JSON of a dead letter" in outcomes[5]
    assert "no broker takes messages for topic gone" in outcomes[7]
    assert outcomes[8] == "line 1 is the same dead letter"
    # The ledger and what is of other groups are the whole file.
    assert job.total_count + FileMessage.objects.filter(file=file, group_name="other").count() == file.line_count == 8
    ids = {one.body.decode(): one.properties[Property.UNIQ_KEY] for one in all_messages(broker.broker, topic)}
    assert ids.keys() == {same.message_id, "mended outside", own.message_id, "from nowhere"}
    # Only what is known to be the sender's keeps the sender's id.
    assert {body for body, unique in ids.items() if not unique.startswith("replay-")} == {
        same.message_id,
        own.message_id,
    }


def test_what_was_sent_from_a_file_is_not_sent_again_nor_by_another_replay(
    broker: OurBroker, there: Cluster, topic: str
) -> None:
    first, second = make_dead(there, 2, topic)
    unknown = {"group": "billing", "origin_topic": topic, "body": "from nowhere"}
    file = take(there, line_of(first, body="mended outside"), unknown)
    assert states(replay(there, file)) == {"sent": 2}
    assert states(replay(there, file)) == {"skipped": 2}
    of_index = finish(make_job(there))
    assert states(of_index) == {"skipped": 1, "sent": 1}
    assert sorted(bodies(broker, topic)) == sorted(["from nowhere", "mended outside", second.message_id])
    assert choosing.chosen_of_file(there, "billing", {"file": file.pk}).replayed_count == 2
    assert states(replay(there, file, skips_replayed=False)) == {"sent": 2}


def test_a_process_that_dies_sends_no_line_twice(
    broker: OurBroker, there: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freezing, "FREEZE_CHUNK", 3)
    lines = [{"group": "billing", "origin_topic": topic, "body": f"b{n}"} for n in range(10)]
    make_dead(there, 1, topic)
    job = make_job(there, selection={"file": take(there, *lines).pk})
    send, left = Sender.send, [1]

    async def dies(self: Sender, batch: Any, pace: Any) -> Any:
        outcomes = await send(self, batch, pace)
        if left[0]:
            left[0] -= 1
            raise Died
        return outcomes

    monkeypatch.setattr(Sender, "send", dies)
    with pytest.raises(Died):
        drive_until(job, lambda job: job.state == JobState.DONE)
    assert states(finish(job)) == {"sent": 10}
    assert sorted(bodies(broker, topic)) == [f"b{n}" for n in range(10)]


def test_a_file_that_is_removed_under_the_job_is_said(broker: OurBroker, there: Cluster, topic: str) -> None:
    make_dead(there, 1, topic)
    file = take(there, *({"group": "billing", "origin_topic": topic, "body": f"b{n}"} for n in range(60)))
    job = make_job(there, selection={"file": file.pk}, rate_per_s=1)
    drive_until(job, lambda job: job.sent_count > 0)
    remove(file)
    counts = states(finish(job))
    assert counts["sent"] + counts["skipped"] == 60
    words = set(ReplayEntry.objects.filter(job=job, state="skipped").values_list("words", flat=True))
    assert words == {"the file that it is in was removed meanwhile"}
    assert len(bodies(broker, topic)) == counts["sent"]


def test_what_is_archived_before_the_ledger_is_written_is_counted_and_said(
    broker: OurBroker, there: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = make_dead(there, 6, topic)
    monkeypatch.setattr(freezing, "FREEZE_CHUNK", 2)
    job = make_job(there, selected_count=6)
    freeze = freezing.freeze

    def archives_meanwhile(job: ReplayJob, token: str) -> None:
        freeze(job, token)
        if job.total_count == 0:
            DeadLetter.objects.filter(pk__in=[dead[0].pk, dead[1].pk]).update(archived_at=dead[0].dead_at)

    monkeypatch.setattr(freezing, "freeze", archives_meanwhile)
    assert states(finish(job)) == {"sent": 4}
    assert job.note.startswith("2 of the 6 selected ones were archived or removed before the ledger was written")


def test_a_body_of_4_mib_is_sent_from_a_file(broker: OurBroker, there: Cluster, topic: str) -> None:
    make_dead(there, 1, topic)
    body = '"\\' * 2 * 2**20
    file = take(there, {"group": "billing", "origin_topic": topic, "body": body})
    assert states(replay(there, file)) == {"sent": 1}
    (got,) = all_messages(broker.broker, topic)
    assert got.body == body.encode()


def test_a_step_of_a_cancelled_replay_of_a_file_skips_the_rest(there: Cluster, topic: str) -> None:
    make_dead(there, 1, topic)
    file = take(there, *({"group": "billing", "origin_topic": topic, "body": f"b{n}"} for n in range(3)), b"{")
    job = make_job(there, selection={"file": file.pk}, rate_per_s=1)
    drive_until(job, lambda job: job.frozen_at is not None)
    ReplayJob.objects.filter(pk=job.pk).update(state=JobState.CANCELLED)
    drive_step(job.pk, LIMITS)
    drive_until(job, lambda job: job.waiting_count == job.sending_count == 0)
    counts = states(job)
    assert counts["refused"] == 1
    assert counts.total() == 4


def test_a_file_is_sent_read_and_listed_over_rest(there: Cluster, topic: str, admin_client: Client) -> None:
    (dead,) = make_dead(there, 1, topic)
    content = json.dumps(line_of(dead)).encode() + b"\n{\n"
    url = "/api/v1/clusters/there/replay-files"
    answer = admin_client.post(f"{url}?name=dead.jsonl", content, content_type="application/jsonl")
    assert answer.status_code == 201, answer.content
    file = answer.json()
    assert (file["line_count"], file["message_count"], file["wrong_count"]) == (2, 1, 1)
    assert file["groups"][1] == {"group": "billing", "message_count": 1, "changed_count": 0, "wrong_count": 0}
    assert admin_client.post(url, content, content_type="application/jsonl").status_code == 200
    assert admin_client.get(url).json()["items"][0]["id"] == file["id"]
    (wrong,) = admin_client.get(f"{url}/{file['id']}/lines?wrong=true").json()["items"]
    assert wrong["line"] == 2
    refused = admin_client.post(url, b"PK\x03\x04", content_type="text/csv")
    assert (refused.status_code, refused.json()["type"]) == (409, "/api/v1/problems/refused-by-rule")
    assert admin_client.post(url, b"{}", content_type="application/json").status_code == 415
    assert admin_client.post(url, b"", content_type="text/csv").status_code == 409
    csv = b"group,body\r\nbilling,x\r\n"
    assert admin_client.post(url, csv, content_type="text/csv; charset=utf-8").status_code == 201
