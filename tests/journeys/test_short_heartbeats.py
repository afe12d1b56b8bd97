"""Heartbeats of version 2 leave out what the broker knows already: Apache's client 5.4.0 with `useHeartbeatV2`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.journeys.conftest import Cluster
from tests.support.java_client import JavaClient
from tests.support.our_broker import OurBroker
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

SHORT: dict[str, Any] = {"useHeartbeatV2": True, "heartbeatBrokerInterval": 1000}


@pytest.fixture
def java(java_process_5_4_0: JavaClient, cluster: Cluster) -> JavaClient:
    return java_process_5_4_0.on(cluster.namesrv)


def subscribed(java: JavaClient, group: str) -> set[str]:
    """Topics; none where the broker didn't answer in time."""
    try:
        return set(java.admin("connections", group=group)["subscriptionTable"])
    except java.error:
        return set()


def test_a_subscription_that_comes_and_goes_is_told_though_heartbeats_are_short(java, cluster, fresh) -> None:
    topics, group, sender, reader = [fresh("short"), fresh("short")], fresh("group"), fresh("sender"), fresh("reader")
    java.producer(sender)
    for topic in topics:
        java.send(sender, topic, count=1)
    java.consumer(reader, group, topics[0], set=SHORT)
    java.wait_consumed(1, reader)
    java.invoke(reader, "subscribe", topics[1], "*")
    consumed = lambda: {message["topic"] for message in java.consumed(reader)}  # noqa: E731
    wait_until(lambda: consumed() == set(topics), what="a message of each topic")
    retries = f"%RETRY%{group}"
    wait_until(lambda: subscribed(java, group) == {*topics, retries}, what="both topics in the group's table")
    java.invoke(reader, "unsubscribe", topics[1])
    wait_until(lambda: subscribed(java, group) == {topics[0], retries}, what="the topic gone from the group's table")
    java.stop(reader)
    java.stop(sender)


def test_after_a_restart_of_our_broker_a_consumer_with_short_heartbeats_goes_on(
    java_process_5_4_0: JavaClient, tmp_path: Path, fresh
) -> None:
    topic, group, sender, reader = fresh("short"), fresh("group"), fresh("sender"), fresh("reader")
    with OurBroker(tmp_path / "store", patient=True) as broker:
        java = java_process_5_4_0.on(broker.namesrv)
        java.producer(sender)
        java.send(sender, topic, count=1)
        java.consumer(reader, group, topic, set=SHORT)
        java.wait_consumed(1, reader)
        broker.stop()
        broker.start()
        wait_until(lambda: _sent(java, sender, topic), what="a message taken by the new broker")
        # A send that gave up waiting may have been stored all the same.
        java.wait_consumed(2, reader)
        java.stop(reader)
        java.stop(sender)


def _sent(java: JavaClient, sender: str, topic: str) -> bool:
    try:
        return bool(java.send(sender, topic, count=1))
    except java.error:
        return False
