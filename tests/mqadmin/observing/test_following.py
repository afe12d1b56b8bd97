"""A follower against a broker that answers watches over a real socket."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group, Member, QueueOffset
from mqadmin.observing import following, leases
from mqadmin.observing.following import Follower, NotFollowable
from mqadmin.rebalances.models import RebalanceEvent
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.bodies.watch import (
    AssignmentState,
    CommittedState,
    GroupState,
    MemberState,
    QueueState,
    WatchBody,
    WatchEvent,
)
from tests.support.follower import follower_thread
from tests.support.scripted_broker import ScriptedBroker, empty_body
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

MEMBER = "10.0.0.7@2211"


def snapshot() -> WatchBody:
    body = empty_body()
    orders = SubscriptionData(topic="orders", sub_string="*", sub_version=1)
    body.topics = [TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=2)]
    body.groups = [
        GroupState(
            config=SubscriptionGroupConfig(group_name="billing"),
            message_model="CLUSTERING",
            consume_type="CONSUME_PASSIVELY",
            members=[
                MemberState(
                    client_id=MEMBER,
                    client_addr="10.0.0.7:5000",
                    language="PYTHON",
                    version=493,
                    online_since_ms=1_700_000_000_000,
                    last_heartbeat_ms=1_700_000_000_000,
                    subscriptions=[orders],
                )
            ],
            subscriptions=[orders],
            assignments=[
                AssignmentState(
                    topic="orders", queue_id=0, client_id=MEMBER, since_ms=1_700_000_000_000, last_pull_ms=1
                )
            ],
        )
    ]
    body.queues = [
        QueueState(topic="orders", queue_id=0, min_offset=0, max_offset=10, max_store_ms=1_700_000_000_000),
        QueueState(topic="orders", queue_id=1, min_offset=0, max_offset=0),
    ]
    body.committed = [CommittedState(group="billing", topic="orders", queue_id=0, committed_offset=10)]
    return body


def progress(committed: int, end: int) -> WatchBody:
    body = empty_body()
    body.queues = [QueueState(topic="orders", queue_id=0, min_offset=0, max_offset=end, max_store_ms=1)]
    body.committed = [
        CommittedState(
            group="billing",
            topic="orders",
            queue_id=0,
            committed_offset=committed,
            behind_since_ms=1_700_000_001_000,
        )
    ]
    return body


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker(is_watched=True) as broker:
        broker.tell(snapshot())
        yield broker


@pytest.fixture
def cluster(broker: ScriptedBroker) -> Cluster:
    return Cluster.objects.create(name="local", namesrv=broker.address)


@pytest.fixture
def follower(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Thread]:
    """Runs in a thread, as in a worker's process; a stop is asked for as a worker does it."""
    monkeypatch.setattr(following, "WATCH_WAIT_MS", 100)
    monkeypatch.setattr(following, "CYCLE_S_MIN", 0.01)
    monkeypatch.setattr(following, "BACKOFF_S", (0.05,))
    with follower_thread(cluster, stopped_within_s=5) as thread:
        yield thread


def test_first_answer_fills_the_rows(follower: threading.Thread, cluster: Cluster) -> None:
    wait_until(lambda: Cluster.objects.get().state == "reachable")
    cluster.refresh_from_db()
    assert cluster.kind == "ours"
    assert cluster.rocketmq_name == "DefaultCluster"
    group = Group.objects.get(name="billing")
    assert (group.lag, group.member_count, group.unknown_queue_count) == (0, 1, 0)
    assert Member.objects.get().client_id == MEMBER
    owned = QueueOffset.objects.get(queue_id=0)
    assert (owned.committed_offset, owned.max_offset, owned.lag, owned.owner) == (10, 10, 0, MEMBER)
    never_written = QueueOffset.objects.get(queue_id=1)
    assert (never_written.committed_offset, never_written.lag, never_written.owner) == (None, 0, "")


def test_progress_reaches_the_rows_within_a_second(follower: threading.Thread, broker: ScriptedBroker) -> None:
    wait_until(lambda: Group.objects.filter(lag=0).exists())
    broker.tell(progress(committed=12, end=20))
    wait_until(lambda: Group.objects.filter(lag=8).exists(), within_s=1)
    assert QueueOffset.objects.get(queue_id=0).behind_method == "store_time"


def test_broker_that_goes_away_is_said_to_be_unreachable_and_followed_again(
    follower: threading.Thread, broker: ScriptedBroker
) -> None:
    wait_until(lambda: Group.objects.exists())
    broker.stop()
    wait_until(lambda: Cluster.objects.get().state == "unreachable")
    assert broker.address in Cluster.objects.get().last_error
    body = snapshot()
    body.queues[0].max_offset = 99
    broker.reboot(body)
    broker.start()
    wait_until(lambda: Cluster.objects.get().state == "reachable")
    assert Cluster.objects.get().last_error == ""
    assert Group.objects.get().lag == 89


def test_follower_that_takes_over_goes_on_at_the_revision_of_the_rows(
    cluster: Cluster, broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "WATCH_WAIT_MS", 50)
    _follow_once(cluster)
    body = progress(committed=11, end=11)
    body.events = [
        WatchEvent(revision=2, at_ms=1_700_000_002_000, kind="member_left", group="billing", client_id="10.0.0.8@1")
    ]
    body.groups = snapshot().groups
    broker.tell(body)
    _follow_once(cluster)
    event = RebalanceEvent.objects.get()
    assert (event.kind, event.client_id, event.facts) == ("left", "10.0.0.8@1", {"member_count": 1})
    _follow_once(cluster)
    assert RebalanceEvent.objects.count() == 1


def test_apache_broker_is_left_to_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedBroker(is_watched=False) as apache:
        cluster = Cluster.objects.create(name="prod", namesrv=apache.address)
        holder = leases.grant(cluster, timezone.now())
        assert holder is not None
        with pytest.raises(NotFollowable):
            Follower(cluster.pk, holder, "jobs@here").run()
    assert Cluster.objects.get().kind == "apache"
    assert leases.grant(cluster, timezone.now()) is not None, "the lease was released"


def test_cluster_of_several_masters_is_left_to_polling(broker: ScriptedBroker, cluster: Cluster) -> None:
    broker.further_masters = {"broker-b": "127.0.0.1:1"}
    following.follow(cluster.pk, leases.grant(cluster, timezone.now()) or uuid.uuid4(), "jobs@here")
    assert Cluster.objects.get().kind == "apache"


def test_follower_without_the_lease_ends_at_once(cluster: Cluster, broker: ScriptedBroker) -> None:
    leases.grant(cluster, timezone.now())
    following.follow(cluster.pk, uuid.uuid4(), "jobs@here")
    assert broker.asked == []


def test_removed_cluster_ends_its_follower() -> None:
    following.follow(4711, uuid.uuid4(), "jobs@here")


def _follow_once(cluster: Cluster) -> None:
    """A follower that is asked to stop after its first answers."""
    holder = leases.grant(cluster, timezone.now())
    assert holder is not None
    ticks = iter(range(3))

    def sleep(_: float) -> None:
        if next(ticks, None) is None:
            leases.ask_worker_to_stop("jobs@here")

    Follower(cluster.pk, holder, "jobs@here", sleep=sleep).run()
    cluster.refresh_from_db()
