"""Polling a real Apache RocketMQ that a Java client uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group, Member, QueueOffset, Subscription, Topic
from mqadmin.clusters.progress import attach_ends
from mqadmin.observing import sampling
from tests.support.apache import BROKER_NAME, CLUSTER, ApacheRocketMQ
from tests.support.follower import follow_one
from tests.support.java import require_apache, require_driver
from tests.support.java_client import JavaClient
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.journey, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def apache(tmp_path: Path) -> Iterator[ApacheRocketMQ]:
    require_apache()
    with ApacheRocketMQ(tmp_path / "apache") as apache:
        yield apache


@pytest.fixture
def java(tmp_path: Path, apache: ApacheRocketMQ) -> Iterator[JavaClient]:
    require_driver("5.4.0")
    with JavaClient("5.4.0", tmp_path / "java", apache.namesrv) as java:
        yield java


def test_rows_say_what_a_java_client_did(apache: ApacheRocketMQ, java: JavaClient) -> None:
    cluster = Cluster.objects.create(name="prod", namesrv=apache.namesrv)
    follow_one(cluster.pk, apache.namesrv)
    cluster.refresh_from_db()
    assert cluster.kind == "apache", "it does not know the watch request"

    java.producer("p")
    java.send("p", "orders", count=10)
    member = java.consumer("c", "billing", "orders")
    java.send("p", "orders", count=10)
    wait_until(lambda: len(java.consumed("c")) >= 10, what="ten consumed messages")
    java.stop("c")
    wait_until(lambda: stored(java) == 20, what="twenty messages that can be read")
    sampled(cluster)
    assert (cluster.state, cluster.rocketmq_name, cluster.last_error) == ("reachable", CLUSTER, "")
    assert cluster.brokers.get().name == BROKER_NAME
    orders = Topic.objects.get(name="orders")
    assert (orders.kind, orders.max_total, orders.perm) == ("normal", 20, 6)
    assert orders.last_stored_at is not None
    group = Group.objects.get(name="billing")
    assert (group.member_count, group.is_system) == (0, False)
    assert Group.objects.get(name="TOOLS_CONSUMER").is_system

    member = java.consumer("d", "billing", "orders", expression="A || B")
    # A Java client's start does not wait for its first heartbeat where its timer sends one at that moment.
    wait_until(lambda: sampled(cluster).groups.get(name="billing").member_count == 1, what="a member seen")
    assert Member.objects.get(left_at=None).client_id == member
    assert Member.objects.get(left_at=None).language == "JAVA"
    in_force = Subscription.objects.filter(ended_at=None, group__name="billing")
    assert in_force.get(topic_name="orders").expression == "A || B"
    java.stop("d")

    java.send("p", "orders", count=8)
    wait_until(lambda: stored(java) == 28, what="all messages that can be read")
    wait_until(lambda: sampled(cluster).groups.get(name="billing").member_count == 0, what="no member any more")
    group.refresh_from_db()
    of_orders = attach_ends(cluster.pk, QueueOffset.objects.filter(group=group, topic_name="orders"))
    assert sum(row.max_offset or 0 for row in of_orders) == 28
    assert group.lag is not None
    assert group.lag >= 8
    assert (group.verdict, group.behind_method != "") == ("stopped", True)


def sampled(cluster: Cluster) -> Cluster:
    """Runs one cycle; returns the cluster as it then stands."""
    sampling.sample_once(cluster, timezone.now())
    cluster.refresh_from_db()
    return cluster


def stored(java: JavaClient) -> int:
    """Apache's broker makes a message readable a moment after it has stored it."""
    return sum(java.admin("max_offset", topic="orders", queue=queue, broker_name=BROKER_NAME) for queue in range(4))
