"""Our own broker's figures on their way to `/metrics`, and one that does not answer."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from mqadmin.clusters.models import Broker, Cluster, ClusterState
from mqadmin.metrics.collecting import ClustersCollector
from mqadmin.metrics.models import BrokerRuntime
from mqadmin.metrics.sampling import FRESH_FOR, sample_all
from tests.support.broker_probe import BrokerProbe
from tests.support.children import free_port
from tests.support.console_rows import make_broker, make_cluster
from tests.support.our_broker import OurBroker

pytestmark = [pytest.mark.journey, pytest.mark.django_db]


def values(prefix: str = "rocketmq_broker") -> dict[str, float]:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ClustersCollector())
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        sample.name: sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith(prefix) and sample.labels.get("brokerIP")
    }


def test_a_brokers_figures_are_those_that_it_tells(tmp_path: Path) -> None:
    now = timezone.now()
    with OurBroker(tmp_path / "store") as broker:
        probe = BrokerProbe(broker.broker)
        for _ in range(5):
            probe.send("orders", b"x" * 100)
        cluster = make_cluster(now=now, namesrv=broker.namesrv, rocketmq_name="local")
        make_broker(cluster, now=now, address=broker.broker)
        assert sample_all(now) == 1
    series = values()
    assert series["rocketmq_brokeruntime_putmessage_times_total"] == 5
    assert series["rocketmq_brokeruntime_msg_put_total_today_now"] == 5
    assert series["rocketmq_brokeruntime_commitlog_maxoffset"] > 500
    assert 0 < series["rocketmq_brokeruntime_commitlog_disk_ratio"] < 1
    assert series["rocketmq_brokeruntime_put_tps10"] > 0
    assert series["rocketmq_broker_tps"] > 0
    assert "rocketmq_broker_qps" not in series, "nothing was given out, so nothing is known"


def test_a_broker_that_does_not_answer_keeps_its_figures_until_they_are_old() -> None:
    now = timezone.now()
    cluster = make_cluster(now=now, namesrv=f"127.0.0.1:{free_port()}")
    gone = make_broker(cluster, now=now, address=f"127.0.0.1:{free_port()}")
    BrokerRuntime.objects.create(broker=gone, figures={"putMessageTimesTotal": "7"}, seen_at=now)
    assert sample_all(now) == 0
    assert values()["rocketmq_brokeruntime_putmessage_times_total"] == 7
    BrokerRuntime.objects.update(seen_at=now - FRESH_FOR - timedelta(seconds=1))
    assert values() == {}


def test_a_cluster_that_is_unreachable_is_not_asked() -> None:
    now = timezone.now()
    make_broker(make_cluster(now=now, state=ClusterState.UNREACHABLE), now=now)
    assert sample_all(now) == 0
    assert (Cluster.objects.count(), Broker.objects.count()) == (1, 1)
