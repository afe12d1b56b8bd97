"""A member that is stopped in its tracks (SIGSTOP) and goes on: the timeline has these facts and no more."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from mqadmin.clusters.models import Cluster, QueueOffset
from mqadmin.rebalances.models import RebalanceEvent
from tests.support.broker_in_thread import BrokerInThread
from tests.support.follower import follower_thread
from tests.support.java_client import JavaClient
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]

# Two minutes for other brokers: ten heartbeats of these members, so that a busy machine loses none of them.
EXPIRY_S = 10
HEARTBEATS = {"heartbeatBrokerInterval": 1000, "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"}
TOPIC, GROUP = "orders", "billing"
QUEUES = {0, 1, 2, 3}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerInThread]:
    with BrokerInThread(tmp_path / "store", member_expiry_s=EXPIRY_S, member_scan_interval_s=0.5) as broker:
        Cluster.objects.create(name="local", namesrv=broker.namesrv)
        with follower_thread(stopped_within_s=120):
            yield broker


@pytest.fixture
def paused(broker: BrokerInThread, tmp_path: Path) -> Iterator[JavaClient]:
    """A process of its own: a signal stops all members of one."""
    with JavaClient("5.4.0", tmp_path / "paused", broker.namesrv) as client:
        yield client


def owned(client_id: str) -> set[int]:
    rows = QueueOffset.objects.filter(group__name=GROUP, topic_name=TOPIC, owner=client_id)
    return set(rows.values_list("queue_id", flat=True))


def test_paused_member_is_lost_its_queues_are_taken_over_and_it_comes_back(
    java_process_5_4_0: JavaClient, broker: BrokerInThread, paused: JavaClient
) -> None:
    java = java_process_5_4_0.on(broker.namesrv)
    java.producer("sender")
    java.send("sender", TOPIC, count=8)
    staying = java.consumer("staying", GROUP, TOPIC, set=HEARTBEATS)
    leaving = paused.consumer("leaving", GROUP, TOPIC, set=HEARTBEATS)
    wait_until(lambda: len(owned(staying)) == len(owned(leaving)) == 2, what="two queues each")
    its_queues = owned(leaving)
    before = set(RebalanceEvent.objects.values_list("pk", flat=True))

    os.kill(paused.child.process.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: owned(staying) == QUEUES, what="its queues taken over")
    finally:
        os.kill(paused.child.process.pid, signal.SIGCONT)
    wait_until(lambda: owned(leaving) == its_queues, what="its queues given back")
    wait_until(lambda: owned(staying) == QUEUES - its_queues, what="two queues each again")

    events = list(RebalanceEvent.objects.exclude(pk__in=before).order_by("at", "pk"))
    assert {(event.source, event.cluster.name) for event in events} == {("watch", "local")}
    facts = [(event.kind, event.client_id) for event in events if event.kind != "queues_moved"]
    assert facts == [("lost", leaving), ("joined", leaving)]
    holders = defaultdict(lambda: [leaving])
    for event in events:
        for move in event.details.get("moves", ()):
            if move["topic"] == TOPIC and move["to"]:
                holders[move["queue_id"]].append(move["to"])
    told = {queue_id: [one for one, _ in groupby(seen)] for queue_id, seen in holders.items()}
    assert told == {queue_id: [leaving, staying, leaving] for queue_id in its_queues}
    paused.stop("leaving")
    java.stop("staying")
    java.stop("sender")
