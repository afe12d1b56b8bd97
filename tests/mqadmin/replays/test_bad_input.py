"""What goes wrong with messages and brokers under a replay, on our broker: each is named, and the rest goes on."""

# ruff: noqa: F811 - fixtures are imported and asked for by the same name

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.deadletters import indexing
from mqadmin.deadletters import tasks as index_tasks
from mqadmin.deadletters.models import DeadLetter
from mqadmin.observing import polling_cycle
from mqadmin.observing.gateway import Gateway, ask
from mqadmin.replays.driving import drive_step
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import JobState, Target
from remoting.wire.bodies.topics import PERM_READ, PERM_READ_WRITE, TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.send import SendMessageHeader
from remoting.wire.headers.typed import write_header
from remoting.wire.properties import Property, encode_properties
from tests.mqadmin.replays.test_driving import (  # noqa: F401 - fixtures
    LIMITS,
    bodies,
    broker,
    drive_until,
    finish,
    make_dead,
    make_job,
    make_topic,
    states,
    there,
    topic,
)
from tests.support import console_rows as seed
from tests.support.asking import ask as ask_broker
from tests.support.our_broker import OurBroker

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True)]

COMPRESSED = 1
DLQ = "%DLQ%billing"


@pytest.fixture(autouse=True)
def _no_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is called by hand."""
    monkeypatch.setattr(index_tasks.index_dead_letters, "apply_async", lambda **_: None)


def set_topic(broker: OurBroker, name: str, perm: int = PERM_READ_WRITE) -> None:
    config = TopicConfig(topic_name=name, read_queue_nums=1, write_queue_nums=1, perm=perm)

    async def create(gateway: Gateway) -> None:
        assert await gateway.topics.create({broker.broker: config}) == {}

    ask(broker.namesrv, create)


def put_dead(broker: OurBroker, origin: str, unique: str, body: bytes, sys_flag: int = 0) -> None:
    """Puts a message into the dead-letter queue as it is, whatever it is."""
    properties = {Property.RETRY_TOPIC: origin, Property.UNIQ_KEY: unique}
    header = SendMessageHeader(
        producer_group="test",
        topic=DLQ,
        queue_id=0,
        sys_flag=sys_flag,
        born_timestamp=round(time.time() * 1000),
        flag=0,
        properties=encode_properties(properties),
    )
    request = Command(code=RequestCode.SEND_MESSAGE, ext_fields=write_header(header), body=body)
    assert ask_broker(broker.broker, request).code == ResponseCode.SUCCESS


def index(cluster: Cluster) -> None:
    polling_cycle.poll_once(cluster, timezone.now())
    cluster.refresh_from_db()
    indexing.index_step(cluster)


def words_of(job: ReplayJob) -> dict[str, str]:
    return {one.message_id: one.words for one in ReplayEntry.objects.filter(job=job) if one.words}


def test_bodies_that_do_not_decode_and_what_retention_took_are_named(
    broker: OurBroker, there: Cluster, topic: str, admin_client: Client, settings: pytest.FixtureRequest
) -> None:
    settings.MQADMIN_DEAD_LETTER_BODY_KIB = 1  # type: ignore[attr-defined]
    set_topic(broker, DLQ)
    put_dead(broker, topic, "PLAIN", b'{"id": 1}')
    put_dead(broker, topic, "BYTES", b"\xff\xfe\x00\x80")
    put_dead(broker, topic, "GARBAGE", b"this is not zlib", COMPRESSED)
    put_dead(broker, topic, "LARGE", b"x" * 5000)
    index(there)
    dead = {one.message_id: one for one in DeadLetter.objects.select_related("failure")}
    assert dead.keys() == {"PLAIN", "BYTES", "GARBAGE", "LARGE"}
    assert dead["GARBAGE"].failure.shape == "unreadable"
    for one in dead.values():
        assert admin_client.get(f"/clusters/there/deadletters/{one.pk}/").status_code == 200
        assert admin_client.get(f"/clusters/there/deadletters/{one.pk}/mend/").status_code in (200, 409, 503)
        assert admin_client.get(f"/api/v1/clusters/there/dead-letters/{one.pk}").status_code == 200
    first = finish(make_job(there))
    assert states(first) == {"sent": 3, "refused": 1}
    assert list(words_of(first)) == ["GARBAGE"]
    assert "compressed body cannot be read" in words_of(first)["GARBAGE"]
    # As retention does: what was not kept is gone, what was kept is sent from there.
    ask(broker.namesrv, _delete_dlq(broker))
    second = finish(make_job(there, skips_replayed=False))
    assert states(second) == {"sent": 2, "refused": 2}
    assert words_of(second).keys() == {"GARBAGE", "LARGE"}


def _delete_dlq(broker: OurBroker):  # type: ignore[no-untyped-def]
    async def delete(gateway: Gateway) -> None:
        assert await gateway.topics.delete([broker.broker], DLQ) == {}

    return delete


def test_a_topic_that_may_not_be_written_to_is_named_before_and_under_the_replay(
    broker: OurBroker, there: Cluster
) -> None:
    shut = make_topic(broker, PERM_READ)
    open_ = make_topic(broker)
    make_dead(there, 2, shut)
    make_dead(there, 2, open_)
    job = finish(make_job(there))
    assert states(job) == {"sent": 2, "refused": 2}
    assert {f"no broker takes messages for topic {shut}: it is gone, or may not be written to"} == set(
        words_of(job).values()
    )
    # Shut while it runs: the broker itself refuses.
    make_dead(there, 12, open_)
    late = make_job(there, rate_per_s=1, skips_replayed=True)
    drive_until(late, lambda job: job.sent_count > 0)
    set_topic(broker, open_, PERM_READ)
    finish(late)
    counts = states(late)
    assert counts["sent"] + counts["refused"] + counts["skipped"] == late.total_count
    assert counts["refused"] >= 3
    refusals = [words for words in words_of(late).values() if "replay" not in words]
    assert all("permi" in words.lower() or "may not be written to" in words for words in refusals)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OurBroker]:
    with OurBroker(tmp_path / "store") as broker:
        yield broker


def test_a_broker_that_is_gone_half_way_costs_waiting_and_no_message(own: OurBroker) -> None:
    now = timezone.now()
    cluster = seed.make_cluster("there", now=now, namesrv=own.namesrv)
    seed.make_broker(cluster, "broker-a", now=now, address=own.broker)
    set_topic(own, "orders")
    dead = make_dead(cluster, 60, "orders")
    job = make_job(cluster, rate_per_s=5)
    drive_until(job, lambda job: job.sent_count > 0)
    own.kill()
    drive_step(job.pk, LIMITS)
    job.refresh_from_db()
    assert job.state == JobState.RUNNING
    assert job.problem
    counts = states(job)
    assert counts["sent"] + counts["waiting"] + counts["sending"] == 60
    own.start()
    ReplayJob.objects.filter(pk=job.pk).update(rate_per_s=1000)
    assert states(finish(job)) == {"sent": 60}
    assert sorted(bodies(own, "orders")) == sorted(one.message_id for one in dead)


def test_what_no_file_may_hold_is_refused_and_the_rest_is_consumed(
    broker: OurBroker, there: Cluster, topic: str, admin_client: Client
) -> None:
    good = {"group": "billing", "origin_topic": topic, "body": "good"}
    lines = [
        json.dumps(good).encode(),
        b"{" + b'"a":[' * 10_000,
        b"\xff\xfe",
        json.dumps({**good, "body": "x" * (4 * 2**20 + 1)}).encode(),
        json.dumps({**good, "cluster": "elsewhere"}).encode(),
        json.dumps({**good, "body": "=1+1"}).encode(),
    ]
    url = "/api/v1/clusters/there/replay-files"
    answer = admin_client.post(url, b"\n".join(lines), content_type="application/jsonl")
    assert answer.status_code == 201, answer.content
    make_dead(there, 1, topic)
    job = finish(make_job(there, selection={"file": answer.json()["id"]}, target=Target.ORIGIN))
    assert states(job) == {"sent": 2, "refused": 4}
    assert all(one.words for one in ReplayEntry.objects.filter(job=job, state="refused"))
    assert sorted(bodies(broker, topic)) == ["=1+1", "good"]
