"""One follower and fifty clusters: all are followed, and one that is away or removed concerns no other."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from mqadmin.clusters.models import Cluster, Topic
from mqadmin.observing.database_threads import SHARED_COUNT
from mqadmin.observing.pace import Pace
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, request_name
from tests.support.follower import follower_thread
from tests.support.patience import let_console_wait
from tests.support.scripted_broker import ScriptedBroker, empty_body
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

COUNT = 50
# A watch waits longer than the test takes.
WAITING = Pace(watch_wait_ms=600_000, cycle_s_min=0.01, tick_s=600, backoff_s=(0.5,))


@pytest.mark.sweep
def test_fifty_clusters_are_followed_and_idle_they_cost_one_waiting_request_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One who is asked twice, since the first answer came late, would be counted twice.
    let_console_wait(monkeypatch)
    with ScriptedBroker(is_watched=True) as broker:
        body = empty_body()
        body.topics = [TopicConfig(topic_name="orders")]
        broker.tell(body)
        Cluster.objects.bulk_create(Cluster(name=f"shop-{number}", namesrv=broker.address) for number in range(COUNT))
        Cluster.objects.create(name="away", namesrv="127.0.0.1:1")
        with follower_thread(stopped_within_s=120, pace=WAITING):
            wait_until(lambda: Cluster.objects.filter(state="reachable").count() == COUNT, what="all are followed")
            watch, names = request_name(RequestCode.WATCH), request_name(RequestCode.GET_BROKER_CLUSTER_INFO)
            wait_until(lambda: Counter(broker.asked) == {names: COUNT, watch: 2 * COUNT}, what="each waits for news")
            assert Topic.objects.count() == COUNT
            # Each of these threads has a connection to the database.
            names_of_threads = [thread.name for thread in threading.enumerate()]
            assert sum(name.startswith("follow") for name in names_of_threads) <= SHARED_COUNT + 1
            wait_until(lambda: Cluster.objects.get(name="away").state == "unreachable", what="the one that is away")
            Cluster.objects.filter(name="shop-7").delete()
            more = empty_body()
            more.topics = [TopicConfig(topic_name="refunds")]
            broker.tell(more)
            wait_until(lambda: Topic.objects.filter(name="refunds").count() == COUNT - 1, what="the news of the others")
            wait_until(lambda: broker.connection_count == COUNT - 1, what="nobody asks for the removed one")
