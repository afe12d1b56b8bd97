"""Whose delay queues are read, by one worker at a time; where nothing can have come, nothing is asked or written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Broker, Cluster, FollowerLease
from mqadmin.retries import indexing, tasks, turns
from mqadmin.retries.models import DelayRead, FailedAttempt, RetryReading
from remoting.wire.codes import RequestCode
from remoting.wire.names import SCHEDULE_TOPIC
from tests.support import console_rows as seed
from tests.support.delay_queues import DelayQueues, retried
from tests.support.follower import follower_thread
from tests.support.our_broker import OurBroker
from tests.support.waiting import wait_until


@pytest.fixture
def asked(queues: DelayQueues) -> list[RequestCode]:
    """What is asked of the broker for the ends of its delay queues."""
    asked: list[RequestCode] = []
    answers = queues.broker.server.answers
    stats = answers[RequestCode.GET_TOPIC_STATS_INFO]

    def count(connection, request):  # type: ignore[no-untyped-def]
        asked.append(RequestCode.GET_TOPIC_STATS_INFO)
        return stats(connection, request)

    answers[RequestCode.GET_TOPIC_STATS_INFO] = count
    return asked


def follow(cluster: Cluster, now: datetime, *, revision: int = 7) -> None:
    """Has a follower vouch for the rows of the cluster, whose broker's watch is read up to `revision`."""
    lease = {"expires_at": now, "taken_at": now - timedelta(hours=1), "renewed_at": now}
    FollowerLease.objects.update_or_create(name=FollowerLease.NAME, defaults=lease)
    cluster.brokers.update(boot="boot-1", revision=revision)


def to_ask(now: datetime) -> list[str]:
    return [broker.name for broker in turns.to_ask(Cluster.objects.with_freshness().get(), now)]


def read_again() -> None:
    """Reads in turn, a cycle later."""
    for row in RetryReading.objects.exclude(read_at=None):
        RetryReading.objects.filter(pk=row.pk).update(read_at=row.read_at - turns.READ_EVERY)
    tasks.index_retries()


def test_followed_broker_without_news_is_not_asked_and_nothing_is_written(prod, queues, now, asked) -> None:
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    follow(prod, now)
    tasks.index_retries()
    assert FailedAttempt.objects.count() == 1
    written = list(RetryReading.objects.values()), list(DelayRead.objects.values())
    asked.clear()
    tasks.index_retries()
    assert asked == []
    assert (list(RetryReading.objects.values()), list(DelayRead.objects.values())) == written


def test_followed_broker_is_asked_again_when_its_watch_told_anything(prod, queues, now, asked) -> None:
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    follow(prod, now)
    tasks.index_retries()
    first = DelayRead.objects.get().read_until
    queues.messages[SCHEDULE_TOPIC] += [retried(1)]
    follow(prod, now, revision=8)
    read_again()
    assert FailedAttempt.objects.count() == 2
    read = DelayRead.objects.get()
    assert (read.boot, read.revision, read.has_seen(first)) == ("boot-1", 8, True)


def test_what_was_stored_since_the_watch_was_read_is_not_taken_for_read(prod, queues, now) -> None:
    """The position is the one before the broker was asked: what it stores meanwhile has it asked once more."""
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    follow(prod, now)
    brokers = turns.to_ask(Cluster.objects.with_freshness().get(), now)
    follow(prod, now, revision=8)
    indexing.index_step(prod, brokers)
    assert DelayRead.objects.get().revision == 7
    assert to_ask(now) == ["broker-a"]


@pytest.mark.parametrize(
    "unvouched",
    [
        {"kind": "apache"},
        {"state": "unreachable"},
        {"brokers_away": {"broker-a": None}},
        {"resting_since": datetime(2026, 1, 1, tzinfo=timezone.get_default_timezone())},
    ],
    ids=["polled", "does not answer", "the broker is away", "rests"],
)
def test_broker_is_asked_where_nobody_vouches_for_its_row(prod, queues, now, unvouched) -> None:
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    follow(prod, now)
    tasks.index_retries()
    assert to_ask(now) == []
    Cluster.objects.update(**unvouched)
    assert to_ask(now) == ["broker-a"]


def test_broker_is_asked_where_no_follower_is_alive(prod, queues, now) -> None:
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    follow(prod, now)
    tasks.index_retries()
    assert to_ask(now + turns.VOUCHED_FOR - timedelta(seconds=1)) == []
    assert to_ask(now + turns.VOUCHED_FOR) == ["broker-a"]


@pytest.mark.parametrize(
    ("seconds", "revision", "away", "is_seen"),
    [(-1, 7, {}, True), (1, 7, {}, False), (-1, 8, {}, False), (-1, 7, {"broker-a": None}, False)],
    ids=["nothing came", "sent since the follower's word", "something came", "the broker is away"],
)
def test_what_was_sent_after_the_reading_is_seen_while_the_watch_tells_nothing(
    prod, now, seconds, revision, away, is_seen
) -> None:
    """An outcome of a sending may be known long after the message was stored, and consumed."""
    read_until = now - timedelta(minutes=5)
    read = DelayRead.objects.create(
        cluster=prod, broker_name="broker-a", read_until=read_until, boot="boot-1", revision=7
    )
    Cluster.objects.update(brokers_away=away)
    follow(prod, now, revision=revision)
    assert read.has_seen(read_until - timedelta(seconds=1))
    assert read.has_seen(now + timedelta(seconds=seconds)) is is_seen


def test_of_several_brokers_those_with_news_are_asked(prod, now) -> None:
    seed.make_broker(prod, "broker-b", now=now)
    follow(prod, now)
    DelayRead.objects.create(cluster=prod, broker_name="broker-a", read_until=now, boot="boot-1", revision=7)
    DelayRead.objects.create(cluster=prod, broker_name="broker-b", read_until=now, boot="boot-0", revision=7)
    assert to_ask(now) == ["broker-b"]


def test_broker_that_was_not_read_to_its_ends_is_asked_again(prod, queues, now) -> None:
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    queues.refusal = "not readable"
    follow(prod, now)
    tasks.index_retries()
    assert to_ask(now) == ["broker-a"]


def test_where_nobody_vouches_the_moment_is_written_once_a_minute(prod, queues, monkeypatch) -> None:
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    indexing.index_step(prod)
    first = DelayRead.objects.get().read_until
    indexing.index_step(prod)
    assert DelayRead.objects.get().read_until == first, "nothing came"
    queues.messages[SCHEDULE_TOPIC] += [retried(1)]
    indexing.index_step(prod)
    second = DelayRead.objects.get().read_until
    assert second > first
    before = second - indexing.READ_NOTED_EVERY
    DelayRead.objects.update(read_until=before)
    indexing.index_step(prod)
    assert DelayRead.objects.get().read_until > second


def test_one_worker_reads_a_cluster_and_no_sooner_than_due(prod, now) -> None:
    with turns.claimed(prod, now) as first, turns.claimed(prod, now + turns.READ_EVERY) as second:
        assert (first, second) == (True, False)
    with turns.claimed(prod, now + timedelta(seconds=1)) as just_read:
        assert not just_read
    with turns.claimed(prod, now + turns.READ_EVERY) as third:
        assert third


def test_reading_that_fails_lets_others_read(prod, now) -> None:
    with pytest.raises(ZeroDivisionError), turns.claimed(prod, now):
        raise ZeroDivisionError
    assert RetryReading.objects.get().claimed_until is None


def test_worker_that_was_killed_keeps_others_from_a_cluster_until_its_claim_ends(prod, now) -> None:
    RetryReading.objects.create(cluster=prod, claimed_until=now + turns.CLAIMED_FOR, read_at=now)
    with turns.claimed(prod, now + turns.CLAIMED_FOR - timedelta(seconds=1)) as early:
        assert not early
    with turns.claimed(prod, now + turns.CLAIMED_FOR) as late:
        assert late


def test_error_of_one_cluster_is_logged_with_its_name_and_the_others_are_read(
    prod, queues, now, monkeypatch, caplog
) -> None:
    broken = seed.make_cluster("broken", now=now)
    seed.make_broker(broken, now=now)
    queues.messages[SCHEDULE_TOPIC] = [retried(0)]
    step, tried = indexing.index_step, []

    def break_off(cluster, *arguments):  # type: ignore[no-untyped-def]
        tried.append(cluster.name)
        if cluster == broken:
            raise ZeroDivisionError
        return step(cluster, *arguments)

    monkeypatch.setattr(indexing, "index_step", break_off)
    # The broken one first.
    RetryReading.objects.create(cluster=prod, read_at=now - timedelta(minutes=1))
    tasks.index_retries()
    assert tried == ["broken", "prod"]
    assert FailedAttempt.objects.count() == 1
    assert "cluster broken" in caplog.text
    assert not RetryReading.objects.exclude(claimed_until=None).exists()


def test_run_ends_in_time_and_the_next_one_begins_with_those_that_were_left_out(prod, now, monkeypatch) -> None:
    other = seed.make_cluster("other", now=now)
    seed.make_broker(other, now=now)
    read: list[str] = []
    monkeypatch.setattr(indexing, "index_step", lambda cluster, _: read.append(cluster.name))
    monkeypatch.setattr(tasks, "RUN_S", 0)
    tasks.index_retries()
    tasks.index_retries()
    assert read == ["prod", "other"]


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Cluster]:
    with OurBroker(tmp_path / "store") as broker:
        cluster = Cluster.objects.create(name="local", namesrv=broker.namesrv)
        with follower_thread(stopped_within_s=120):
            yield cluster


@pytest.mark.journey
@pytest.mark.django_db(transaction=True)
def test_our_own_idle_broker_is_asked_once(followed: Cluster) -> None:
    def is_read() -> bool:
        tasks.index_retries()
        told = Broker.objects.exclude(boot="").values_list("boot", "revision")
        return bool(told) and list(told) == list(DelayRead.objects.values_list("boot", "revision"))

    wait_until(is_read, what="the delay queues are read up to what the watch told")
    asked = RetryReading.objects.get().read_at
    tasks.index_retries()
    assert RetryReading.objects.get().read_at == asked
