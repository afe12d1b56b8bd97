"""Makes the series: RocketMQ's, under the names and labels that boards and alert rules use, and the console's own.

What is not known is left out, never 0. RocketMQ's exporter has no label for the cluster in its series of groups; here
each has one, because two clusters may have groups of one name. `msgModel` and `countOfOnlineConsumers` are the
exporter's: 0 broadcasting, 1 clustering; "" where the number is not known.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from django.db.models import Count
from django.utils import timezone
from prometheus_client.core import Metric

from consumer.models import HostedGroup, InstanceLease, LeaseState, LoopsWorker
from mqadmin.clusters.models import (
    Broker,
    Cluster,
    ClusterState,
    FollowerLease,
    Group,
    TopicKind,
    Verdict,
)
from mqadmin.hosting.hosted import console_names
from mqadmin.metrics import broker_series, rows
from mqadmin.metrics.broker_series import gauge
from mqadmin.metrics.lines import Lines, text_of
from mqadmin.metrics.models import FRESH_FOR, BrokerRuntime, MemberFigures
from remoting.wire.names import is_retry_topic

# Of groups, of topics on brokers, of groups on topics on brokers, each: a page of 60 MB at the very most.
ROWS_MAX = 50_000

_DLQ_PREFIX = "%DLQ%"
_MODEL_NUMBERS = {"BROADCASTING": "0", "CLUSTERING": "1"}
_DIFF_LABELS = ("cluster", "group", "topic", "countOfOnlineConsumers", "msgModel")
_BROKER_5_LABELS = ("cluster", "node_type", "node_id", "topic", "consumer_group")


class ClustersCollector:
    """Reads the database at each scrape; nothing is kept, so any number of processes may serve it."""

    def __init__(self, now: Callable[[], datetime] = timezone.now, rows_max: int = ROWS_MAX) -> None:
        self._now = now
        self._rows_max = rows_max

    def text(self) -> bytes:
        """Returns what a scrape answers. Raises DatabaseError."""
        return text_of(self.collect())

    def collect(self) -> Iterator[Metric | Lines]:
        began_s = time.perf_counter()
        now = self._now()
        progress = rows.progress(self._rows_max + 1)
        ends = rows.ends(self._rows_max + 1)
        groups = rows.groups(self._rows_max + 1)
        yield from _group_diffs(progress[: self._rows_max])
        yield from _group_offsets(progress[: self._rows_max], now)
        yield from _topic_offsets(ends[: self._rows_max])
        yield from _groups(groups[: self._rows_max], now)
        yield from _clusters(list(Cluster.objects.with_freshness()), now)
        yield from _verdicts()
        yield from _schedulers(Broker.objects.select_related("cluster").filter(scheduler_driver__isnull=False))
        yield from _hosting(now)
        runtimes = list(BrokerRuntime.objects.select_related("broker__cluster").filter(seen_at__gt=now - FRESH_FOR))
        yield from broker_series.runtimes(runtimes)
        yield from broker_series.storage(runtimes)
        yield from broker_series.rates(runtimes)
        yield from broker_series.members(
            MemberFigures.objects.select_related("member__group__cluster").filter(seen_at__gt=now - FRESH_FOR)
        )
        yield from broker_series.costs(self._rows_max)
        left_out = gauge("mqadmin_metrics_left_out", "1 where there are more rows than a scrape may have.", "rows")
        for name, found in (("group_offsets", progress), ("topic_offsets", ends), ("groups", groups)):
            left_out.add_metric([name], int(len(found) > self._rows_max))
        yield left_out
        seconds = gauge("mqadmin_metrics_seconds", "What it took to collect these series.")
        seconds.add_metric([], time.perf_counter() - began_s)
        yield seconds


def _group_diffs(progress: Iterable[rows.Progress]) -> Iterator[Lines]:
    """Yields the lags of groups by topic, summed over brokers. A topic of which one broker is not known is left out."""
    sums: defaultdict[tuple[str, ...], list[int | None]] = defaultdict(list)
    for row in progress:
        members = "" if row.member_count is None else str(row.member_count)
        model = _MODEL_NUMBERS.get(row.message_model, "")
        sums[row.cluster, row.group, row.topic, members, model].append(row.lag)
    plain = Lines("rocketmq_group_diff", "Messages that the group is behind on a topic.", *_DIFF_LABELS)
    retry = Lines("rocketmq_group_retrydiff", "The same of the group's retry topic.", *_DIFF_LABELS)
    dead = Lines("rocketmq_group_dlqdiff", "The same of a dead-letter topic.", *_DIFF_LABELS)
    for labels, lags in sums.items():
        if None in lags:
            continue
        topic = labels[2]
        family = retry if is_retry_topic(topic) else dead if topic.startswith(_DLQ_PREFIX) else plain
        family.add_metric(labels, sum(lag for lag in lags if lag is not None))
    yield from (plain, retry, dead)


def _group_offsets(progress: Iterable[rows.Progress], now: datetime) -> Iterator[Lines]:
    labels = ("cluster", "broker", "topic", "group")
    committed = Lines("rocketmq_consumer_offset", "The sum of the group's committed queue offsets.", *labels)
    total = Lines("rocketmq_group_consume_total_offset", "The same, under the exporter's older name.", *labels)
    lag = Lines("rocketmq_consumer_lag_messages", "Messages that the group is behind.", *_BROKER_5_LABELS)
    latency = Lines(
        "rocketmq_consumer_lag_latency",
        "How long ago the oldest message that waits was stored, in ms; of sampled clusters at the newest sample.",
        *_BROKER_5_LABELS,
    )
    for row in progress:
        if row.lag is not None and row.is_behind_known:
            until = now if row.behind_until is None else min(now, row.behind_until)
            waited = until - row.behind_since if row.lag and row.behind_since is not None else timedelta()
            of_row = [row.cluster, "broker", row.broker, row.topic, row.group]
            latency.add_metric(of_row, max(0, waited // timedelta(milliseconds=1)))
        if row.committed is not None:
            for family in (committed, total):
                family.add_metric([row.cluster, row.broker, row.topic, row.group], row.committed)
        if row.lag is not None:
            lag.add_metric([row.cluster, "broker", row.broker, row.topic, row.group], row.lag)
    yield from (committed, total, lag, latency)


def _topic_offsets(ends: Iterable[rows.End]) -> Iterator[Lines]:
    labels = ("cluster", "broker", "topic")
    plain = Lines("rocketmq_producer_offset", "The sum of the topic's max queue offsets.", *labels)
    retry = Lines("rocketmq_topic_retry_offset", "The same of a retry topic.", *labels)
    dead = Lines("rocketmq_topic_dlq_offset", "The same of a group's dead letters.", "cluster", "broker", "group")
    for end in ends:
        if end.kind == TopicKind.DEAD_LETTER:
            dead.add_metric([end.cluster, end.broker, end.topic.removeprefix(_DLQ_PREFIX)], end.max_offset)
        else:
            family = retry if end.kind == TopicKind.RETRY else plain
            family.add_metric([end.cluster, end.broker, end.topic], end.max_offset)
    yield from (plain, retry, dead)


def _groups(groups: Iterable[Group], now: datetime) -> Iterator[Lines]:
    count = Lines("rocketmq_group_count", "Members of the group that are online.", "cluster", "group")
    behind = Lines(
        "mqadmin_group_behind_seconds", "How long the group's longest-waiting message has waited.", "cluster", "group"
    )
    consumed = Lines("mqadmin_group_consumed_per_second", "Messages that the group consumes.", "cluster", "group")
    for group in groups:
        labels = [group.cluster.name, group.name]
        if group.member_count is not None:
            count.add_metric(labels, group.member_count)
        if group.behind_since is not None:
            waited = group.behind.seen_until(now) - group.behind_since
            behind.add_metric(labels, max(0.0, waited.total_seconds()))
        elif group.lag == 0:
            behind.add_metric(labels, 0)
        if group.out_per_s is not None:
            consumed.add_metric(labels, group.out_per_s)
    yield from (count, behind, consumed)


def _clusters(clusters: Iterable[Cluster], now: datetime) -> Iterator[Metric]:
    up = gauge("mqadmin_cluster_up", "1 where all brokers of the cluster answer, else 0.", "cluster", "state")
    age = gauge("mqadmin_cluster_age_seconds", "How old what is known of the cluster is.", "cluster")
    requests = gauge(
        "mqadmin_cluster_cycle_requests", "Requests that the last cycle of polling the cluster cost.", "cluster"
    )
    for cluster in clusters:
        up.add_metric([cluster.name, cluster.state], int(cluster.state == ClusterState.REACHABLE))
        if cluster.observed_until is not None:
            age.add_metric([cluster.name], max(0.0, (now - cluster.observed_until).total_seconds()))
        if cluster.cycle_request_count is not None:
            requests.add_metric([cluster.name], cluster.cycle_request_count)
    yield from (up, age, requests)
    renewed = gauge("mqadmin_follower_renewed_age_seconds", "How long ago the follower's lease was renewed.")
    for moment in FollowerLease.objects.filter(renewed_at__isnull=False).values_list("renewed_at", flat=True):
        renewed.add_metric([], max(0.0, (now - moment).total_seconds()) if moment else 0.0)
    yield renewed


def _verdicts() -> Iterator[Metric]:
    """Yields all verdicts of each cluster, so that an alert sees one fall back to 0."""
    family = gauge("mqadmin_groups", "Groups by the console's verdict.", "cluster", "verdict")
    counted = (
        Group.objects.filter(is_system=False).order_by().values_list("cluster__name", "verdict").annotate(n=Count("pk"))
    )
    numbers = Counter({(cluster, verdict): number for cluster, verdict, number in counted})
    for cluster in Cluster.objects.values_list("name", flat=True):
        for verdict in Verdict.values:
            family.add_metric([cluster, verdict], numbers[cluster, verdict])
    yield family


def _schedulers(brokers: Iterable[Broker]) -> Iterator[Metric]:
    labels = ("cluster", "broker")
    driven = gauge("mqadmin_scheduler_driven", "1 where a driver holds the scheduler's lease.", *labels)
    waiting = gauge("mqadmin_scheduler_waiting", "What waits for its time.", *labels, "kind")
    late = gauge("mqadmin_scheduler_late_seconds", "How late the last due thing was.", *labels, "kind")
    for broker in brokers:
        names = [broker.cluster.name, broker.name]
        driven.add_metric(names, int(bool(broker.scheduler_driver)))
        for kind in broker.scheduler_kinds:
            waiting.add_metric([*names, kind["kind"]], kind["waiting_count"])
            if kind["late_ms"] >= 0:
                late.add_metric([*names, kind["kind"]], kind["late_ms"] / 1000)
    yield from (driven, waiting, late)


def _hosting(now: datetime) -> Iterator[Metric]:
    """`cluster` is the console's name of it where it shows it, else the one of the setting MQADMIN_CLUSTERS."""
    labels = ("cluster", "group")
    shown = console_names()
    wanted = gauge("mqadmin_hosted_instances_wanted", "Instances that a group is to have; 0 while stopped.", *labels)
    running = gauge("mqadmin_hosted_instances_running", "Instances of it that run.", *labels)
    counts = Counter(InstanceLease.objects.filter(state=LeaseState.RUNNING).values_list("group", flat=True))
    for row in HostedGroup.objects.all():
        names = [shown.get(row.cluster, row.cluster), row.group]
        wanted.add_metric(names, 0 if row.is_stopped else row.wanted_instances)
        running.add_metric(names, counts[row.pk])
    yield from (wanted, running)
    age = gauge(
        "mqadmin_loops_worker_heartbeat_age_seconds", "Seconds since the last heartbeat of a loops worker.", "worker"
    )
    for worker in LoopsWorker.objects.filter(is_stopping=False):
        age.add_metric([worker.node], max(0.0, (now - worker.heartbeat_at).total_seconds()))
    yield age
