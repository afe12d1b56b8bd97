"""A follower against a broker that answers watches over a real socket."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from django.utils import timezone

from mqadmin.clusters.models import Broker, Cluster, Group, Member, QueueOffset, Topic, TopicQueue
from mqadmin.clusters.progress import attach_ends
from mqadmin.lag.models import LagHistory
from mqadmin.observing import leases
from mqadmin.observing.following import Follower, Pace
from mqadmin.observing.signals import Ticked, ticked
from mqadmin.rebalances.models import RebalanceEvent
from mqadmin.subscriptions.models import GroupConflict
from mqadmin.subscriptions.selectors import compared
from remoting.shutdown_signal import ShutdownSignal
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
from tests.support.follower import follow_one, follower_thread
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


STOPPED_WITHIN_S = 120.0
QUICK = Pace(watch_wait_ms=100, cycle_s_min=0.01, tick_s=0.1, backoff_s=(0.05,))


@pytest.fixture
def follower(cluster: Cluster) -> Iterator[threading.Thread]:
    with follower_thread(stopped_within_s=STOPPED_WITHIN_S, pace=QUICK) as thread:
        yield thread


def test_first_answer_fills_the_rows(follower: threading.Thread, cluster: Cluster) -> None:
    wait_until(lambda: Cluster.objects.get().state == "reachable")
    cluster.refresh_from_db()
    assert cluster.kind == "ours"
    assert cluster.rocketmq_name == "DefaultCluster"
    group = Group.objects.get(name="billing")
    assert (group.lag, group.member_count, group.unknown_queue_count) == (0, 1, 0)
    assert Member.objects.get().client_id == MEMBER
    owned, never_written = attach_ends(cluster.pk, QueueOffset.objects.order_by("queue_id"))
    assert (owned.committed_offset, owned.max_offset, owned.lag, owned.owner) == (10, 10, 0, MEMBER)
    assert (never_written.committed_offset, never_written.lag, never_written.owner) == (None, 0, "")


def test_progress_reaches_the_rows(follower: threading.Thread, broker: ScriptedBroker) -> None:
    wait_until(lambda: Group.objects.filter(lag=0).exists())
    broker.tell(progress(committed=12, end=20))
    wait_until(lambda: Group.objects.filter(lag=8).exists())
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


def test_follower_that_takes_over_goes_on_at_the_revision_of_the_rows(cluster: Cluster, broker: ScriptedBroker) -> None:
    _follow_until(lambda: Cluster.objects.get().state == "reachable")
    body = progress(committed=11, end=11)
    body.events = [
        WatchEvent(revision=2, at_ms=1_700_000_002_000, kind="member_left", group="billing", client_id="10.0.0.8@1")
    ]
    body.groups = snapshot().groups
    broker.tell(body)
    _follow_until(RebalanceEvent.objects.exists)
    event = RebalanceEvent.objects.get()
    assert (event.kind, event.client_id, event.details) == ("left", "10.0.0.8@1", {"member_count": 1})
    asked_count = len(broker.asked)
    _follow_until(lambda: len(broker.asked) >= asked_count + 3)
    assert RebalanceEvent.objects.count() == 1


@pytest.mark.slow
def test_idle_cluster_costs_one_waiting_request_and_no_row(cluster: Cluster, broker: ScriptedBroker) -> None:
    with follower_thread(
        stopped_within_s=STOPPED_WITHIN_S, pace=Pace(watch_wait_ms=600_000, tick_s=0.02, cycle_s_min=0.01)
    ):
        wait_until(lambda: Group.objects.filter(due_at=None).exists() or broker.asked.count("WATCH") == 2)
        wait_until(lambda: broker.asked.count("WATCH") == 2)
        Group.objects.update(due_at=None)
        Topic.objects.update(due_at=None)
        wait_until(lambda: not Cluster.objects.exclude(lag_due_at=None).exists())
        before = _rows()
        wait_until(_ticks(20))
        assert _rows() == before
        assert broker.asked.count("WATCH") == 2, "the one that brought the snapshot, and the one that waits"
    assert broker.asked.count("WATCH") == 2, "stopping does not wait for the answer"


def test_lag_is_measured_again_without_rewriting_the_readers_of_a_topic_that_grows(
    follower: threading.Thread, cluster: Cluster, broker: ScriptedBroker
) -> None:
    wait_until(lambda: Group.objects.filter(lag=0).exists())
    before = list(QueueOffset.objects.values())
    body = empty_body()
    body.queues = [QueueState(topic="orders", queue_id=0, min_offset=0, max_offset=25)]
    broker.tell(body)
    wait_until(lambda: Group.objects.filter(lag=15).exists())
    assert list(QueueOffset.objects.values()) == before


@pytest.mark.slow
def test_answer_that_cost_many_rows_puts_off_the_next(cluster: Cluster, broker: ScriptedBroker) -> None:
    # Four rows are worth a second here: an offset, an end, what the group's and the topic's figures are.
    with follower_thread(stopped_within_s=STOPPED_WITHIN_S, pace=replace(QUICK, rows_per_s_max=4.0)):
        wait_until(lambda: Group.objects.filter(lag=0).exists())
        told_s = time.monotonic()
        broker.tell(progress(committed=12, end=20))
        wait_until(lambda: Group.objects.filter(lag=8).exists())
        broker.tell(progress(committed=12, end=30))
        wait_until(lambda: Group.objects.filter(lag=18).exists())
        # No upper bound: a machine that does other things takes its time.
        assert time.monotonic() - told_s >= 1.0


def test_apache_broker_is_left_to_polling() -> None:
    with ScriptedBroker(is_watched=False) as apache:
        Cluster.objects.create(name="prod", namesrv=apache.address)
        _follow_until(lambda: Cluster.objects.get().kind == "apache")
    assert leases.grant(timezone.now()) is not None, "the lease was released"


def test_cluster_that_does_not_answer_holds_up_no_other(cluster: Cluster, follower: threading.Thread) -> None:
    Cluster.objects.create(name="away", namesrv="127.0.0.1:1")
    wait_until(lambda: Cluster.objects.filter(name="local", state="reachable").exists())
    wait_until(lambda: Cluster.objects.filter(name="away", state="unreachable").exists())


def test_cluster_that_cannot_be_written_says_so(cluster: Cluster) -> None:
    def fail(event: Ticked, **_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    ticked.connect(fail)
    try:
        with follower_thread(stopped_within_s=STOPPED_WITHIN_S, pace=QUICK):
            # The answers in between say that it is reachable.
            wait_until(
                lambda: Cluster.objects.filter(state="unreachable", last_error__contains="a fault of ours").exists()
            )
    finally:
        ticked.disconnect(fail)


def test_follower_without_the_lease_ends_at_once(cluster: Cluster, broker: ScriptedBroker) -> None:
    leases.grant(timezone.now())
    asyncio.run(Follower(uuid.uuid4(), "following@here", ShutdownSignal().wait).run())
    assert broker.asked == []


def test_removed_cluster_ends_its_follower(cluster: Cluster, broker: ScriptedBroker) -> None:
    namesrv = cluster.namesrv
    cluster.delete()
    follow_one(4711, namesrv)


def _follow_until(holds: Callable[[], object]) -> None:
    with follower_thread(stopped_within_s=STOPPED_WITHIN_S, pace=QUICK):
        wait_until(holds)


def _ticks(count: int) -> Callable[[], bool]:
    """Whether so many ticks were published from now on."""
    seen: list[Ticked] = []

    def note(event: Ticked, **_: object) -> None:
        seen.append(event)

    ticked.connect(note, weak=False)

    def have_passed() -> bool:
        if len(seen) >= count:
            ticked.disconnect(note)
            return True
        return False

    return have_passed


def _rows() -> list[list[dict[str, Any]]]:
    models = (Cluster, Broker, Topic, TopicQueue, Group, Member, QueueOffset, LagHistory)
    return [list(model.objects.order_by("pk").values()) for model in models]


def test_members_that_differ_in_how_they_consume_are_in_conflict(
    follower: threading.Thread, broker: ScriptedBroker
) -> None:
    wait_until(lambda: Group.objects.filter(lag=0).exists())
    body = snapshot()
    (first,) = body.groups[0].members
    first.message_model, first.consume_from_where = "CLUSTERING", "CONSUME_FROM_LAST_OFFSET"
    others = [msgspec.structs.replace(first, client_id=f"10.0.0.{number}@1") for number in (8, 9)]
    others[1].message_model, others[1].consume_from_where = "BROADCASTING", "CONSUME_FROM_FIRST_OFFSET"
    body.groups[0].members += others
    broker.tell(body)
    wait_until(GroupConflict.objects.exists)
    found = compared(Group.objects.get(), Cluster.objects.all()).findings
    assert [(one.kind, one.odd, one.by_odd, one.by_rest) for one in found] == [
        ("model", ("10.0.0.9@1",), "BROADCASTING", "CLUSTERING"),
        ("start", ("10.0.0.9@1",), "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_LAST_OFFSET"),
    ]
    body.groups[0].members = [first, others[0]]
    broker.tell(body)
    wait_until(lambda: not GroupConflict.objects.exists())
