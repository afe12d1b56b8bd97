"""Polling a real Apache RocketMQ that Java clients use."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

import pytest
from django.utils import timezone

from mqadmin.clusters import held_queues
from mqadmin.clusters.models import (
    Cluster,
    ClusterKind,
    Group,
    Member,
    MemberProgress,
    QueueOffset,
    Subscription,
    Topic,
)
from mqadmin.clusters.progress import attach_ends
from mqadmin.observing import polling_cycle
from mqadmin.rebalances.models import RebalanceEvent
from mqadmin.subscriptions import asking
from tests.support.apache import BROKER_NAME, CLUSTER, ApacheRocketMQ
from tests.support.follower import follow_one
from tests.support.java import require_apache, require_driver
from tests.support.java_client import JavaClient
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.journey, pytest.mark.django_db(transaction=True)]


# Two minutes for other brokers: twenty heartbeats of these members, so that a busy machine loses none of them.
EXPIRY_MS = 20_000
HEARTBEATS = {"heartbeatBrokerInterval": 1000}
QUEUES = {0, 1, 2, 3}


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheRocketMQ]:
    require_apache()
    settings = {"channelExpiredTimeout": str(EXPIRY_MS)}
    with ApacheRocketMQ(tmp_path_factory.mktemp("apache") / "apache", settings=settings) as apache:
        yield apache


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory, apache: ApacheRocketMQ) -> Iterator[JavaClient]:
    require_driver("5.4.0")
    with JavaClient("5.4.0", tmp_path_factory.mktemp("java"), apache.namesrv) as java:
        yield java


@pytest.fixture
def paused(tmp_path: Path, apache: ApacheRocketMQ) -> Iterator[JavaClient]:
    """A process of its own: a signal stops all members of one."""
    require_driver("5.4.0")
    with JavaClient("5.4.0", tmp_path / "paused", apache.namesrv) as client:
        yield client


def test_rows_say_what_a_java_client_did(apache: ApacheRocketMQ, java: JavaClient) -> None:
    cluster = Cluster.objects.create(name="prod", namesrv=apache.namesrv)
    follow_one(cluster.pk, apache.namesrv)
    cluster.refresh_from_db()
    assert cluster.kind == "apache", "it does not know the watch request"

    java.producer("p")
    java.send("p", "orders", count=10)
    member = java.consumer("c", "billing", "orders", set=HEARTBEATS)
    java.send("p", "orders", count=10)
    wait_until(lambda: len(java.consumed("c")) >= 10, what="ten consumed messages")
    wait_until(lambda: stored(java) == 20, what="twenty messages that can be read")
    # One that stops at once leaves the last message uncommitted: it would wait beside the last eight.
    wait_until(lambda: sampled(cluster).groups.get(name="billing").lag == 0, what="all of them are committed")
    java.stop("c")
    sampled(cluster)
    assert (cluster.state, cluster.rocketmq_name, cluster.last_error) == ("reachable", CLUSTER, "")
    assert cluster.brokers.get().name == BROKER_NAME
    orders = Topic.objects.get(name="orders")
    assert (orders.kind, orders.max_total, orders.perm) == ("normal", 20, 6)
    assert orders.last_stored_at is not None
    group = Group.objects.get(name="billing")
    assert (group.member_count, group.is_system) == (0, False)
    assert Group.objects.get(name="TOOLS_CONSUMER").is_system

    member = java.consumer("d", "billing", "orders", expression="A || B", set=HEARTBEATS)
    # A Java client's start does not wait for its first heartbeat where its timer sends one at that moment.
    wait_until(lambda: sampled(cluster).groups.get(name="billing").member_count == 1, what="a member seen")
    assert Member.objects.get(left_at=None).client_id == member
    assert Member.objects.get(left_at=None).language == "JAVA"
    in_force = Subscription.objects.filter(ended_at=None, group__name="billing")
    assert in_force.get(topic_name="orders").expression == "A || B"
    java.stop("d")

    sent_from = timezone.now()
    java.send("p", "orders", count=8)
    sent_until = timezone.now()
    wait_until(lambda: stored(java) == 28, what="all messages that can be read")
    wait_until(lambda: sampled(cluster).groups.get(name="billing").member_count == 0, what="no member any more")
    # A request that a busy machine answers late leaves the figures of that cycle as old as they were.
    wait_until(lambda: (sampled(cluster).groups.get(name="billing").lag or 0) >= 8, what="the last eight wait")
    group.refresh_from_db()
    of_orders = attach_ends(cluster.pk, QueueOffset.objects.filter(group=group, topic_name="orders"))
    assert sum(row.max_offset or 0 for row in of_orders) == 28
    assert (group.verdict, group.behind_method != "") == ("stopped", True)

    committed = list(QueueOffset.objects.filter(group=group).order_by("pk").values_list("pk", "committed_offset"))
    wait_until(lambda: sampled(cluster).groups.get(name="billing").behind_method == "store_time", what="store times")
    group.refresh_from_db()
    assert group.behind_since is not None
    assert sent_from - timedelta(milliseconds=1) <= group.behind_since <= sent_until, "of a message of the last eight"
    after = list(QueueOffset.objects.filter(group=group).order_by("pk").values_list("pk", "committed_offset"))
    assert (after, group.member_count) == (committed, 0), "reading commits nothing and joins nothing"


def test_paused_member_is_missed_its_queues_are_taken_over_and_it_comes_back(
    apache: ApacheRocketMQ, java: JavaClient, paused: JavaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on our broker (tests/journeys/test_paused_member.py), but for what two samples cannot tell: how it went."""
    monkeypatch.setattr(asking, "YOUNG", timedelta(0))
    cluster = Cluster.objects.create(name="prod", namesrv=apache.namesrv, kind=ClusterKind.APACHE)
    java.producer("sender")
    java.send("sender", "invoices", count=8)
    staying = java.consumer("staying", "clerks", "invoices", set=HEARTBEATS)
    leaving = paused.consumer("leaving", "clerks", "invoices", set=HEARTBEATS)
    sampled_at: list[datetime] = []

    def look() -> dict[str, set[int]]:
        """Runs a cycle, and a round of questions to members; returns which queues each of those online holds."""
        sampled_at.append(timezone.now())
        polling_cycle.poll_once(cluster, sampled_at[-1])
        cluster.refresh_from_db()
        asking.ask_round(cluster, timezone.now())
        rows = MemberProgress.objects.filter(member__group__name="clerks", member__left_at=None)
        held = {row.member.client_id: held_queues.read(row.queues) for row in rows.select_related("member")}
        return {one: {queue.queue_id for queue in queues if queue.topic == "invoices"} for one, queues in held.items()}

    wait_until(lambda: [len(held) for held in look().values()] == [2, 2], what="two queues each")
    shared = look()
    its_queues = shared[leaving]
    before = set(RebalanceEvent.objects.values_list("pk", flat=True))

    os.kill(paused.child.process.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: look() == {staying: QUEUES}, what="its queues taken over")
    finally:
        os.kill(paused.child.process.pid, signal.SIGCONT)
    wait_until(lambda: look() == shared, what="two queues each again")

    events = list(RebalanceEvent.objects.exclude(pk__in=before).order_by("at", "pk"))
    assert {(event.source, event.group.name) for event in events} == {("poll", "clerks")}
    facts = [event for event in events if event.kind != "queues_moved"]
    assert [(event.kind, event.client_id) for event in facts] == [("gone", leaving), ("joined", leaving)]
    assert [event.details["member_count"] for event in facts] == [1, 2]
    for event in facts:
        assert event.details["since"] == sampled_at[sampled_at.index(event.at) - 1].isoformat(), "the sample before"
    holders = {queue_id: [client_id] for client_id, held in shared.items() for queue_id in held}
    for event in events:
        for move in event.details.get("moves", ()):
            assert datetime.fromisoformat(event.details["since"]) < event.at
            if move["topic"] == "invoices" and move["to"]:
                holders[move["queue_id"]].append(move["to"])
    told = {queue_id: [one for one, _ in groupby(seen)] for queue_id, seen in holders.items()}
    # A Java client may give up a queue of its own for a while; nobody else gets it.
    back = {queue_id: [leaving, staying, leaving] if queue_id in its_queues else [staying] for queue_id in QUEUES}
    assert told == back
    paused.stop("leaving")
    java.stop("staying")
    java.stop("sender")


def sampled(cluster: Cluster) -> Cluster:
    """Runs one cycle; returns the cluster as it then stands."""
    polling_cycle.poll_once(cluster, timezone.now())
    cluster.refresh_from_db()
    return cluster


def stored(java: JavaClient) -> int:
    """Apache's broker makes a message readable a moment after it has stored it."""
    return sum(java.admin("max_offset", topic="orders", queue=queue, broker_name=BROKER_NAME) for queue in range(4))
