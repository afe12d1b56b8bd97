"""Our own broker's figures on their way to `/metrics`, and one that does not answer."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from consumer.engine.config import ConsumerConfig
from consumer.engine.listening import Listener
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from mqadmin.clusters.models import Broker, Cluster, ClusterState
from mqadmin.metrics.collecting import ClustersCollector
from mqadmin.metrics.models import FRESH_FOR, BrokerRuntime, MemberFigures
from mqadmin.metrics.sampling import sample_all
from tests.support.broker_probe import BrokerProbe
from tests.support.children import free_port
from tests.support.console_rows import make_broker, make_cluster, make_group, make_member, make_topic
from tests.support.our_broker import OurBroker

pytestmark = [pytest.mark.journey, pytest.mark.django_db]


def values(prefix: str = "rocketmq_broker") -> dict[str, float]:
    collector = ClustersCollector()
    families = text_string_to_metric_families(collector.text().decode())
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
        make_topic(cluster, "orders", now=now)
        assert sample_all(now) == 1
    series = values()
    assert series["rocketmq_brokeruntime_putmessage_times_total"] == 5
    assert series["rocketmq_brokeruntime_msg_put_total_today_now"] == 5
    assert series["rocketmq_brokeruntime_commitlog_maxoffset"] > 500
    assert 0 < series["rocketmq_brokeruntime_commitlog_disk_ratio"] < 1
    assert series["rocketmq_brokeruntime_put_tps10"] > 0
    assert series["rocketmq_broker_tps"] > 0
    assert "rocketmq_broker_qps" not in series, "nothing was given out, so nothing is known"
    (runtime,) = BrokerRuntime.objects.all()
    assert runtime.topic_rates["orders"]["TOPIC_PUT_NUMS"] > 0
    assert runtime.topic_rates["orders"].keys() == {"TOPIC_PUT_NUMS"}, "ours counts no bytes"
    assert cluster.request_costs.get(address=broker.broker).request_count >= 4


@pytest.mark.django_db(transaction=True)
async def test_a_members_figures_are_those_that_it_tells(tmp_path: Path) -> None:
    now, consumed = timezone.now(), asyncio.Event()

    async def consume(_: Any) -> None:
        consumed.set()

    def rows(client_id: str) -> None:
        cluster = make_cluster(now=now, namesrv=broker.namesrv)
        make_broker(cluster, now=now, address=broker.broker)
        make_member(make_group(cluster, "billing", now=now), client_id, now=now, known_by=["broker-a"])
        make_member(make_group(cluster, "gone", now=now), "10.0.0.7@1", now=now)

    with OurBroker(tmp_path / "store") as broker:
        await asyncio.to_thread(BrokerProbe(broker.broker).send, "orders", b"x")
        config = ConsumerConfig(broker.namesrv, "billing", start=start_rule("first"))
        member = PushConsumer(config, {"orders": Listener("orders", consume, "*", is_async=True)})
        await member.start()
        await asyncio.wait_for(consumed.wait(), 120)
        await database_sync_to_async(rows)(member.client_id)
        member.suspend()
        assert await database_sync_to_async(sample_all)(now) == 1
        await member.stop()
    told = await database_sync_to_async(lambda: MemberFigures.objects.select_related("member").get())()
    assert told.member.client_id == member.client_id
    assert told.statuses["orders"]["consume_ok_tps"] > 0
    assert told.suspended == "by its program"


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
