"""Series under RocketMQ's names have its names and labels, and docs/OPERATING.md lists those that are there and not."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

import pytest
from django.utils import timezone
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from consumer.models import HostedGroup, LoopsWorker
from mqadmin.clusters.models import ClusterKind, FollowerLease, RequestCost
from mqadmin.metrics import runtime_series
from mqadmin.metrics.collecting import ClustersCollector
from mqadmin.metrics.models import BrokerRuntime, MemberFigures
from tests.support.console_rows import (
    make_broker,
    make_cluster,
    make_group,
    make_member,
    make_queue_offset,
    make_topic,
)

pytestmark = pytest.mark.django_db

DOCS = (Path(__file__).parents[3] / "docs" / "OPERATING.md").read_text(encoding="utf-8")
TOPIC = ("cluster", "broker", "topic")
GROUP = ("cluster", "broker", "topic", "group")
DIFF = ("group", "topic", "countOfOnlineConsumers", "msgModel")
MEMBER = ("clientAddr", "clientId", "group", "topic")
BROKER = ("cluster", "brokerIP", "broker")
NODE = ("cluster", "node_type", "node_id")
# RocketMQ's exporter (RMQMetricsCollector).
EXPORTER = {
    **dict.fromkeys(("rocketmq_group_diff", "rocketmq_group_retrydiff", "rocketmq_group_dlqdiff"), DIFF),
    "rocketmq_group_count": ("caddr", "localaddr", "group"),
    **dict.fromkeys(("rocketmq_producer_tps", "rocketmq_producer_message_size", "rocketmq_producer_offset"), TOPIC),
    "rocketmq_topic_retry_offset": TOPIC,
    "rocketmq_topic_dlq_offset": ("cluster", "broker", "group"),
    **dict.fromkeys(("rocketmq_consumer_tps", "rocketmq_consumer_message_size", "rocketmq_consumer_offset"), GROUP),
    **dict.fromkeys(("rocketmq_group_consume_tps", "rocketmq_group_consume_total_offset"), GROUP),
    **dict.fromkeys(("rocketmq_group_get_latency_by_storetime", "rocketmq_send_back_nums"), GROUP),
    "rocketmq_client_consume_fail_msg_count": MEMBER,
    "rocketmq_client_consume_fail_msg_tps": MEMBER,
    "rocketmq_client_consume_ok_msg_tps": MEMBER,
    "rocketmq_client_consume_rt": MEMBER,
    "rocketmq_client_consumer_pull_rt": MEMBER,
    "rocketmq_client_consumer_pull_tps": MEMBER,
    **dict.fromkeys(("rocketmq_broker_tps", "rocketmq_broker_qps", "rocketmq_broker_commitlog_diff"), BROKER),
}
# RocketMQ 5's own.
FIVE = {
    **dict.fromkeys(
        ("rocketmq_messages_in_total", "rocketmq_throughput_in_total", "rocketmq_message_size"),
        (*NODE, "topic", "message_type"),
    ),
    **dict.fromkeys(
        (
            "rocketmq_messages_out_total",
            "rocketmq_throughput_out_total",
            "rocketmq_consumer_ready_messages",
            "rocketmq_consumer_inflight_messages",
            "rocketmq_consumer_queueing_latency",
            "rocketmq_consumer_lag_messages",
            "rocketmq_consumer_lag_latency",
            "rocketmq_send_to_dlq_messages_total",
        ),
        (*NODE, "topic", "consumer_group"),
    ),
    **dict.fromkeys(
        (
            "rocketmq_storage_size",
            "rocketmq_storage_message_reserve_time",
            "rocketmq_storage_dispatch_behind_bytes",
            "rocketmq_storage_flush_behind_bytes",
        ),
        NODE,
    ),
}
REFERENCE = EXPORTER | FIVE
# Series that are there with other labels than the exporter's.
OTHERWISE = {"rocketmq_group_count": {"cluster", "group"}}
RUNTIME = "rocketmq_brokeruntime_"


@pytest.fixture
def families() -> list[Metric]:
    """Of an install in which every series has a sample."""
    now = timezone.now()
    cluster = make_cluster(now=now)
    polled = make_cluster("apache", now=now, kind=ClusterKind.APACHE, cycle_request_count=43)
    assert polled
    broker = make_broker(cluster, now=now)
    group = make_group(cluster, "billing", now=now)
    for topic, kind in (("orders", "normal"), ("%RETRY%billing", "retry"), ("%DLQ%billing", "dead_letter")):
        make_topic(cluster, topic, now=now, kind=kind, queue_count=1)
        make_queue_offset(group, topic, 0, now=now, lag=1)
    status = dict.fromkeys(
        ("consume_failed_msgs", "consume_failed_tps", "consume_ok_tps", "consume_rt", "pull_rt", "pull_tps"), 1.0
    )
    MemberFigures.objects.create(
        member=make_member(group, "10.0.0.7@1", now=now), statuses={"orders": status}, seen_at=now
    )
    BrokerRuntime.objects.create(
        broker=broker,
        figures=dict.fromkeys(runtime_series.NUMBERS.values(), "1")
        | dict.fromkeys(runtime_series.RATES.values(), "1.0 2.0 3.0")
        | {
            "commitLogDirCapacity": "Total : 93.7 GiB, Free : 20.1 GiB.",
            "remainHowManyDataToFlush": "12 B",
            "putMessageDistributeTime": "[<=0ms]:5 [0~10ms]:9",
        },
        put_per_s=1.0,
        get_per_s=2.0,
        topic_rates={"orders": {"TOPIC_PUT_NUMS": 1.0, "TOPIC_PUT_SIZE": 100.0}},
        group_rates={"orders@billing": {"GROUP_GET_NUMS": 1.0, "GROUP_GET_SIZE": 100.0, "SNDBCK_PUT_NUMS": 0.5}},
        seen_at=now,
    )
    RequestCost.objects.create(cluster=cluster, address=broker.address, request_count=7, updated_at=now)
    FollowerLease.objects.create(expires_at=now, taken_at=now, renewed_at=now)
    HostedGroup.objects.create(group="billing", wanted_instances=1, declared_instances=1)
    LoopsWorker.objects.create(
        node="loops@here",
        boot=uuid4(),
        machine="here",
        pid=1,
        process_start=1,
        slots=1,
        started_at=now,
        heartbeat_at=now,
    )
    collector = ClustersCollector(lambda: now)
    return list(text_string_to_metric_families(collector.text().decode()))


def labels_by_series(families: list[Metric]) -> dict[str, set[str]]:
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


def documented(heading: str) -> set[str]:
    """The series of the first column of the table below the heading."""
    section = DOCS.split(f"### {heading}\n", 1)[1].split("\n##", 1)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    return {name for row in rows for name in re.findall(r"`(\w+)", row)}


def test_series_of_rocketmq_have_its_labels(families: list[Metric]) -> None:
    found = {name: labels for name, labels in labels_by_series(families).items() if name.startswith("rocketmq_")}
    unknown = {name for name in found if name not in REFERENCE and not name.startswith(RUNTIME)}
    assert not unknown
    for name, labels in found.items():
        if name.startswith(RUNTIME):
            assert labels == {"cluster", "brokerIP", "brokerHost", "des", "boottime", "broker_version"}, name
        else:
            assert labels == OTHERWISE.get(name, {"cluster", *REFERENCE[name]}), name


def test_every_series_of_the_reference_is_there_or_said_to_be_missing(families: list[Metric]) -> None:
    missing = REFERENCE.keys() - labels_by_series(families).keys()
    assert missing == documented("Series that are not there")


def test_the_documentation_lists_what_is_there(families: list[Metric]) -> None:
    there = {name for name in labels_by_series(families) if not name.startswith(RUNTIME)}
    assert there == {name for name in documented("Series") if not name.startswith(RUNTIME)}
