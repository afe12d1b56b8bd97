"""What a follower writes of a cluster that has other name servers by now: nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from mqadmin.clusters.models import Broker, Cluster, ClusterKind, Topic
from mqadmin.observing.followed_rows import FollowedRows
from mqadmin.observing.gateway import KnownBrokers
from remoting.wire.bodies.route import BrokerData
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.headers.watch import WatchResponseHeader
from tests.support.scripted_broker import empty_body

pytestmark = pytest.mark.django_db

NAMESRV = "127.0.0.1:9876"
SILENT = {"127.0.0.1:9877": "does not answer"}
LISTED = KnownBrokers([BrokerData(broker_addrs={"0": "127.0.0.1:10911"}, broker_name="broker-a", cluster="shop")])


def test_follower_writes_nothing_of_a_cluster_that_has_other_name_servers() -> None:
    cluster = Cluster.objects.create(name="shop", namesrv=NAMESRV)
    rows = FollowedRows(cluster.pk, NAMESRV, None, lambda: None)
    (broker,) = rows.begin(LISTED)
    cluster.point_at("127.0.0.1:9999")
    body = empty_body(name="broker-a")
    body.topics = [TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=2, perm=6)]
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.write(broker, WatchResponseHeader(boot="boot-1", revision=1, is_snapshot=True), body)
    for step in (lambda: rows.begin(LISTED), lambda: rows.note_unreachable("it is down")):
        with pytest.raises(Cluster.DoesNotExist):
            step()
    rows.leave_to_polling(ClusterKind.APACHE)
    cluster.refresh_from_db()
    assert (cluster.kind, cluster.state) == (ClusterKind.UNKNOWN, "new")
    assert not Broker.objects.exists()
    assert not Topic.objects.exists()


def test_silent_name_server_has_no_row_of_a_broker_written_again_and_again() -> None:
    cluster = Cluster.objects.create(name="shop", namesrv=NAMESRV)
    rows = FollowedRows(cluster.pk, NAMESRV, None, lambda: None)
    rows.begin(LISTED)
    before = Broker.objects.values().get()
    with CaptureQueriesContext(connection) as queries:
        rows.begin(replace(LISTED, silent=SILENT))
        rows.begin(KnownBrokers([], SILENT))
    assert [query for query in queries if query["sql"].startswith(f'UPDATE "{Broker._meta.db_table}"')] == []
    assert Broker.objects.values().get() == before
    rows.note_away("broker-a", "connection refused")
    rows.begin(KnownBrokers([], SILENT))
    assert Broker.objects.get().last_error == "connection refused"
