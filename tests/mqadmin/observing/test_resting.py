"""What is claimed of a cluster that is not asked for a while, because its last answer cost many rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Broker, Cluster, Group
from mqadmin.lag import measuring, sampling, verdicts
from mqadmin.lag.models import GroupSample, SpanState
from mqadmin.lag.packing import unpack
from mqadmin.observing import leases
from mqadmin.observing.followed_rows import FollowedRows
from mqadmin.observing.gateway import KnownBrokers
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.route import BrokerData
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.bodies.watch import CommittedState, GroupState, QueueState, WatchBody
from remoting.wire.headers.watch import WatchResponseHeader
from tests.support.scripted_broker import empty_body

pytestmark = pytest.mark.django_db

NAMESRV = "127.0.0.1:9876"
LISTED = KnownBrokers([BrokerData(broker_addrs={"0": "127.0.0.1:10911"}, broker_name="broker-a", cluster="shop")])
START = datetime.fromtimestamp(1_700_000_000, UTC)
ANSWERED = START + timedelta(seconds=1)

Clock = Callable[[datetime], None]


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets what time it is."""

    def set_now(now: datetime) -> None:
        monkeypatch.setattr(timezone, "now", lambda: now)

    set_now(START)
    return set_now


@pytest.fixture(autouse=True)
def stalls_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (verdicts, measuring):
        monkeypatch.setattr(module, "STALLED_AFTER_S", 2)


def answer(committed_offset: int, max_offset: int) -> WatchBody:
    body = empty_body(name="broker-a")
    body.topics = [TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1, perm=6)]
    body.groups = [
        GroupState(
            config=SubscriptionGroupConfig(group_name="billing"),
            message_model="CLUSTERING",
            consume_type="CONSUME_PASSIVELY",
            members=[],
            subscriptions=[],
            assignments=[],
        )
    ]
    body.queues = [QueueState(topic="orders", queue_id=0, min_offset=0, max_offset=max_offset, max_store_ms=1)]
    body.committed = [
        CommittedState(
            group="billing",
            topic="orders",
            queue_id=0,
            committed_offset=committed_offset,
            behind_since_ms=int(START.timestamp() * 1000),
        )
    ]
    return body


def header(revision: int) -> WatchResponseHeader:
    return WatchResponseHeader(boot="boot-1", revision=revision, is_snapshot=revision == 1)


@pytest.fixture
def rows(at: Clock) -> FollowedRows:
    """Of a cluster whose broker has just answered; a member is online."""
    cluster = Cluster.objects.create(name="shop", namesrv=NAMESRV, created_at=START)
    leases.grant(START)
    rows = FollowedRows(cluster.pk, NAMESRV, None, lambda: None)
    (broker,) = rows.begin(LISTED)
    rows.write(broker, header(1), answer(10, 20))
    Group.objects.update(member_count=1)
    at(ANSWERED)
    rows.write(broker, header(2), progress(15, 30))
    return rows


def progress(committed_offset: int, max_offset: int) -> WatchBody:
    body = answer(committed_offset, max_offset)
    body.topics, body.groups = [], []
    return body


def renew_lease(now: datetime) -> Cluster:
    """The follower is at work meanwhile; returns the cluster as pages read it."""
    holder = leases.FollowerLease.objects.get().holder
    assert leases.renew(holder, "following@here", now)
    return Cluster.objects.with_freshness().get()


def test_group_is_not_stalled_by_time_that_passes_while_its_cluster_rests(rows: FollowedRows, at: Clock) -> None:
    rows.rest("broker-a")
    at(ANSWERED + timedelta(seconds=60))
    rows.tick()
    assert Group.objects.get().verdict != "stalled"
    broker = Broker.objects.get()
    rows.write(broker, header(3), progress(28, 30))
    rows.tick()
    assert Group.objects.get().verdict == "ok"


def test_group_that_stands_is_stalled_by_the_answer_after_the_rest(rows: FollowedRows, at: Clock) -> None:
    rows.rest("broker-a")
    at(ANSWERED + timedelta(seconds=60))
    rows.tick()
    rows.write(Broker.objects.get(), header(2), empty_body(name="broker-a"))
    rows.tick()
    assert Group.objects.get().verdict == "stalled"


def test_rows_of_a_cluster_that_rests_are_as_old_as_its_last_answer(rows: FollowedRows) -> None:
    now = ANSWERED + timedelta(seconds=60)
    assert renew_lease(now).observed_until == now
    rows.rest("broker-a")
    resting = renew_lease(now)
    assert resting.observed_until == ANSWERED
    assert resting.true_until(START, ("broker-a",)) == ANSWERED
    rows.write(Broker.objects.get(), header(2), empty_body(name="broker-a"))
    assert renew_lease(now).observed_until == now


def test_cluster_that_rests_is_sampled_with_the_age_of_its_rows(rows: FollowedRows) -> None:
    rows.rest("broker-a")
    now = ANSWERED + timedelta(seconds=70)
    resting = renew_lease(now)
    assert sampling.quality(resting, now).state == SpanState.COMPLETE
    assert sampling.sample_cluster(resting, now)
    assert unpack(bytes(GroupSample.objects.get().packed)).age_s == 70


def test_follower_that_takes_over_ends_the_rest_with_its_first_answer(rows: FollowedRows) -> None:
    rows.rest("broker-a")
    after = FollowedRows(Cluster.objects.get().pk, NAMESRV, None, lambda: None)
    (broker,) = after.begin(LISTED)
    assert Cluster.objects.get().resting_since == ANSWERED
    after.write(broker, header(2), empty_body(name="broker-a"))
    assert Cluster.objects.get().resting_since is None
