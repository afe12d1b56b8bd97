"""The series of what brokers and members told of their run, and of what asking them cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from mqadmin.clusters.models import Broker, RequestCost
from mqadmin.metrics.models import BrokerRuntime, MemberFigures
from mqadmin.metrics.runtime_series import series_of

_RUNTIME_LABELS = ("cluster", "brokerIP", "brokerHost", "des", "boottime", "broker_version")


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """Returns a gauge without samples yet."""
    return GaugeMetricFamily(name, text, labels=labels)


def runtimes(runtimes: Iterable[BrokerRuntime]) -> Iterator[Metric]:
    labels = ("cluster", "brokerIP", "broker")
    put = gauge("rocketmq_broker_tps", "Messages stored a second, over the last minute.", *labels)
    got = gauge("rocketmq_broker_qps", "Messages given out a second, over the last minute.", *labels)
    families: dict[str, GaugeMetricFamily] = {}
    for runtime in runtimes:
        broker, figures = runtime.broker, runtime.figures
        for family, rate in ((put, runtime.put_per_s), (got, runtime.get_per_s)):
            if rate is not None:
                family.add_metric([broker.cluster.name, broker.address, broker.name], rate)
        of_broker = [
            *(broker.cluster.name, broker.address, broker.name),
            *(figures.get(key, "") for key in ("brokerVersionDesc", "bootTimestamp", "brokerVersion")),
        ]
        for name, value in series_of(figures):
            family = families.setdefault(
                name, gauge(f"rocketmq_brokeruntime_{name}", "Of the broker's runtime info.", *_RUNTIME_LABELS)
            )
            family.add_metric(of_broker, value)
    yield from (put, got, *families.values())


def storage(runtimes: Iterable[BrokerRuntime]) -> Iterator[Metric]:
    """Yields RocketMQ 5's own series of the store, as far as the runtime info has them."""
    labels = ("cluster", "node_type", "node_id")
    families = {
        "reserve": gauge("rocketmq_storage_message_reserve_time", "Age of the oldest message, in ms.", *labels),
        "dispatch": gauge(
            "rocketmq_storage_dispatch_behind_bytes", "Bytes of the commit log without queue entries yet.", *labels
        ),
        "flush": gauge("rocketmq_storage_flush_behind_bytes", "Bytes that are not on the disk yet.", *labels),
    }
    for runtime in runtimes:
        figures = dict(series_of(runtime.figures))
        values = {"dispatch": figures.get("dispatch_behind_bytes"), "flush": figures.get("remain_howmanydata_toflush")}
        oldest_ms = figures.get("earliest_message_timestamp", 0.0)
        if oldest_ms > 0:
            values["reserve"] = max(0.0, runtime.seen_at.timestamp() * 1000 - oldest_ms)
        for name, value in values.items():
            if value is not None:
                families[name].add_metric([runtime.broker.cluster.name, "broker", runtime.broker.name], value)
    yield from families.values()


# Statistic (315) → series of the exporter.
_TOPIC_SERIES = {"TOPIC_PUT_NUMS": "rocketmq_producer_tps", "TOPIC_PUT_SIZE": "rocketmq_producer_message_size"}
_GROUP_SERIES = {
    "GROUP_GET_NUMS": ("rocketmq_consumer_tps", "rocketmq_group_consume_tps"),
    "GROUP_GET_SIZE": ("rocketmq_consumer_message_size",),
    "SNDBCK_PUT_NUMS": ("rocketmq_send_back_nums",),
}


def rates(runtimes: Iterable[BrokerRuntime]) -> Iterator[Metric]:
    text = "{} of the broker, a second over the last minute."
    of_topics = {
        name: gauge(series, text.format(name), "cluster", "broker", "topic") for name, series in _TOPIC_SERIES.items()
    }
    of_groups = {
        name: [gauge(one, text.format(name), "cluster", "broker", "topic", "group") for one in series]
        for name, series in _GROUP_SERIES.items()
    }
    for runtime in runtimes:
        place = [runtime.broker.cluster.name, runtime.broker.name]
        for topic, rates in runtime.topic_rates.items():
            for name, rate in rates.items():
                of_topics[name].add_metric([*place, topic], rate)
        for key, rates in runtime.group_rates.items():
            for name, rate in rates.items():
                for family in of_groups[name]:
                    family.add_metric([*place, *key.split("@", 1)], rate)
    yield from (*of_topics.values(), *(family for families in of_groups.values() for family in families))


# Field of `ConsumeStatus` (307) → series of the exporter.
_MEMBER_SERIES = {
    "consume_failed_msgs": "rocketmq_client_consume_fail_msg_count",
    "consume_failed_tps": "rocketmq_client_consume_fail_msg_tps",
    "consume_ok_tps": "rocketmq_client_consume_ok_msg_tps",
    "consume_rt": "rocketmq_client_consume_rt",
    "pull_rt": "rocketmq_client_consumer_pull_rt",
    "pull_tps": "rocketmq_client_consumer_pull_tps",
}


def members(figures: Iterable[MemberFigures]) -> Iterator[Metric]:
    labels = ("cluster", "clientAddr", "clientId", "group", "topic")
    families = {
        field: gauge(series, f"{field} of a member's running info.", *labels)
        for field, series in _MEMBER_SERIES.items()
    }
    for told in figures:
        member = told.member
        for topic, status in told.statuses.items():
            for field, family in families.items():
                of_member = [member.group.cluster.name, member.address, member.client_id, member.group.name, topic]
                family.add_metric(of_member, status[field])
    yield from families.values()


def costs(rows_max: int) -> Iterator[Metric]:
    """Yields what observing cost each server; `broker` is "" for a name server."""
    labels = ("cluster", "server", "broker")
    requests, errors, seconds, received = (
        CounterMetricFamily(f"mqadmin_observing_{name}", text, labels=labels)
        for name, text in (
            ("requests", "Requests that observing the cluster sent."),
            ("request_errors", "Those of them that no answer came to."),
            ("request_seconds", "Time that answers took, without watches."),
            ("received_bytes", "Bodies of answers."),
        )
    )
    names = {
        (cluster_id, address): name
        for cluster_id, address, name in Broker.objects.values_list("cluster_id", "address", "name")
    }
    for cost in RequestCost.objects.select_related("cluster").order_by("cluster", "address")[:rows_max]:
        server = [cost.cluster.name, cost.address, names.get((cost.cluster_id, cost.address), "")]
        for family, number in (
            (requests, cost.request_count),
            (errors, cost.error_count),
            (seconds, cost.seconds),
            (received, cost.byte_count),
        ):
            family.add_metric(server, number)
    yield from (requests, errors, seconds, received)
