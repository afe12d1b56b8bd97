"""A member that is stopped in its tracks (SIGSTOP) and goes on, or is killed: the timeline has these facts alone."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from mqadmin.clusters.models import Cluster, QueueOffset
from mqadmin.lag import sampling
from mqadmin.lag.models import GroupSample
from mqadmin.lag.packing import unpack
from mqadmin.rebalances import judging
from mqadmin.rebalances.models import RebalanceEvent
from tests.support.broker_in_thread import BrokerInThread
from tests.support.follower import follower_thread
from tests.support.java_client import JavaClient
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.django_db(transaction=True)]

# Two minutes for other brokers: twenty heartbeats of these members, so that a busy machine loses none of them.
EXPIRY_S = 20
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
def apart(broker: BrokerInThread, tmp_path: Path) -> Iterator[JavaClient]:
    """A process of its own: a signal stops all members of one."""
    with JavaClient("5.4.0", tmp_path / "apart", broker.namesrv) as client:
        yield client


def owned(client_id: str) -> set[int]:
    rows = QueueOffset.objects.filter(group__name=GROUP, topic_name=TOPIC, owner=client_id)
    return set(rows.values_list("queue_id", flat=True))


def are_shared(*members: tuple[JavaClient, str, str]) -> bool:
    """Tells whether each has two queues, by its own word, too: then no queue moves any more."""
    shares = [(owned(client_id), java.queues(name, TOPIC)) for java, name, client_id in members]
    return all(len(seen) == 2 and seen == held for seen, held in shares)


def holders(events: list[RebalanceEvent], first: str) -> dict[int, list[str]]:
    """Returns who held each queue that moved, one after the other, by what the timeline says."""
    found: defaultdict[int, list[str]] = defaultdict(lambda: [first])
    for event in events:
        for move in event.details.get("moves", ()):
            if move["topic"] == TOPIC and move["to"]:
                found[move["queue_id"]].append(move["to"])
    return {queue_id: [one for one, _ in groupby(seen)] for queue_id, seen in found.items()}


def wait_sampling(fact: Callable[[], bool], what: str) -> None:
    """Waits, and meanwhile takes each cycle that is due, so that no gap is between two samples."""

    def sampled() -> bool:
        sampling.sample_cluster(Cluster.objects.with_freshness().get(), timezone.now())
        return fact()

    wait_until(sampled, what=what)


def lags_when_sampled_last(since: datetime) -> dict[int, int | None]:
    """Returns the lags that the newest sample of the topic has, if it is later."""
    rows = GroupSample.objects.filter(group__name=GROUP, topic_name=TOPIC, at_s__gte=int(since.timestamp()))
    newest = rows.order_by("-at_s").first()
    return {} if newest is None else {one.queue_id: one.lag for one in unpack(newest.packed).queues}


def test_paused_member_is_lost_its_queues_are_taken_over_and_it_comes_back(
    java_process_5_4_0: JavaClient, broker: BrokerInThread, apart: JavaClient
) -> None:
    java = java_process_5_4_0.on(broker.namesrv)
    java.producer("sender")
    java.send("sender", TOPIC, count=8)
    staying = java.consumer("staying", GROUP, TOPIC, set=HEARTBEATS)
    leaving = apart.consumer("leaving", GROUP, TOPIC, set=HEARTBEATS)
    wait_until(lambda: are_shared((java, "staying", staying), (apart, "leaving", leaving)), what="two queues each")
    its_queues = owned(leaving)
    before = set(RebalanceEvent.objects.values_list("pk", flat=True))

    os.kill(apart.child.process.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: owned(staying) == QUEUES, what="its queues taken over")
    finally:
        os.kill(apart.child.process.pid, signal.SIGCONT)
    wait_until(lambda: owned(leaving) == its_queues, what="its queues given back")
    wait_until(lambda: owned(staying) == QUEUES - its_queues, what="two queues each again")

    events = list(RebalanceEvent.objects.exclude(pk__in=before).order_by("at", "pk"))
    assert {(event.source, event.cluster.name) for event in events} == {("watch", "local")}
    facts = [(event.kind, event.client_id) for event in events if event.kind != "queues_moved"]
    assert facts == [("lost", leaving), ("joined", leaving)]
    assert holders(events, leaving) == {queue_id: [leaving, staying, leaving] for queue_id in its_queues}
    apart.stop("leaving")
    java.stop("staying")
    java.stop("sender")


def test_killed_member_is_lost_its_queues_move_and_the_pause_is_what_offsets_show(
    java_process_5_4_0: JavaClient, broker: BrokerInThread, apart: JavaClient, admin_client: Client
) -> None:
    java = java_process_5_4_0.on(broker.namesrv)
    java.producer("sender")
    java.send("sender", TOPIC, count=8)
    staying = java.consumer("staying", GROUP, TOPIC, set=HEARTBEATS)
    wait_until(lambda: owned(staying) == QUEUES, what="all queues with one member")
    began = timezone.now()
    wait_sampling(lambda: lags_when_sampled_last(began) == dict.fromkeys(QUEUES, 0), "a sample without lag")
    never_ends = {"*": [{"do": "ok", "sleep_ms": 3_600_000}]}
    leaving = apart.consumer("leaving", GROUP, TOPIC, set=HEARTBEATS, outcomes=never_ends)
    wait_sampling(lambda: are_shared((java, "staying", staying), (apart, "leaving", leaving)), "two queues each")
    its_queues = owned(leaving)
    before = set(RebalanceEvent.objects.values_list("pk", flat=True))
    sent = timezone.now()
    java.send("sender", TOPIC, count=8)

    def stand() -> bool:
        lags = lags_when_sampled_last(sent)
        return all(lags.get(queue_id) for queue_id in its_queues)

    wait_sampling(stand, "a sample in which its queues stand")
    killed = timezone.now()
    apart.kill()
    wait_sampling(lambda: owned(staying) == QUEUES, "its queues taken over")
    wait_sampling(lambda: lags_when_sampled_last(killed) == dict.fromkeys(QUEUES, 0), "a sample without lag again")
    ended = timezone.now()

    events = list(RebalanceEvent.objects.exclude(pk__in=before).order_by("at", "pk"))
    facts = [(one.kind, one.client_id, one.details["member_count"]) for one in events if one.kind != "queues_moved"]
    assert facts == [("lost", leaving, 1)], "a killed member says no farewell"
    assert holders(events, leaving) == {queue_id: [leaving, staying] for queue_id in its_queues}

    judging.judge(Cluster.objects.get(), events[-1].at + timedelta(minutes=2))
    rows = RebalanceEvent.objects.exclude(pk__in=before).filter(kind="queues_moved")
    moved = [one for one in rows if any(move["topic"] == TOPIC for move in one.details["moves"])]
    pauses = [one.details["pause"] for one in moved]
    longest = max(pauses, key=lambda one: one["at_most_s"])
    assert (longest["is_over"], longest["topic"], longest["queue_id"] in its_queues) == (True, TOPIC, True)
    stood_s = (ended - sent).total_seconds()
    assert longest["at_least_s"] <= stood_s
    assert longest["at_most_s"] >= (killed - sent).total_seconds() - 1
    page = admin_client.get(f"/clusters/local/groups/{GROUP}/rebalances/").content.decode()
    assert "lost its connection" in page
    assert "Consumption" in page
    items = admin_client.get("/api/v1/clusters/local/rebalances").json()["items"]
    assert [one["details"]["pause"] for one in items if one["id"] == moved[-1].pk] == [moved[-1].details["pause"]]
    java.stop("staying")
    java.stop("sender")
