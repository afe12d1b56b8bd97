"""What a group's rows add up to: lag, how long behind, rates, verdict, history.

Called for the groups whose rows just changed, and every few seconds for those that time alone can change: whose lag is
not 0 (STALLED is a matter of time) or whose rates are not 0 (they fall when nothing comes any more).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

from django.db.models import F, Max, Min, Q, QuerySet, Sum

from mqadmin.clusters.models import Cluster, Group, QueueOffset, Topic, TopicQueue, Verdict, WaitingMethod
from mqadmin.lag import history
from mqadmin.lag.models import LagHistory
from mqadmin.lag.rates import Rate, rate
from mqadmin.lag.verdicts import GROWTH_WINDOW_S, QUIET_AFTER_S, GroupFacts, judge
from mqadmin.observing.bulk import chunks, update

# A shorter silence is a restart or a hand-over, and what came meanwhile is told afterwards.
GAP_MIN = timedelta(seconds=60)
_BROADCASTING = "BROADCASTING"
_MEASURED_FIELDS = (
    "lag",
    "queue_count",
    "unknown_queue_count",
    "behind_since",
    "behind_method",
    "moved_at",
    "in_per_s",
    "out_per_s",
    "rate_base_at",
    "rate_base_max",
    "rate_base_committed",
    "rate_base_queues",
    "offsets_seen_at",
    "verdict",
    "verdict_rank",
    "verdict_since",
    "verdict_rule",
    "verdict_facts",
    "revision",
)
_MEASURED_TOPIC_FIELDS = (
    "message_count",
    "max_total",
    "last_stored_at",
    "offsets_seen_at",
    "rate_base_at",
    "rate_base_total",
    "in_per_s",
)
_SHOWN_FIELDS = ("lag", "unknown_queue_count", "behind_since", "in_per_s", "out_per_s", "verdict", "verdict_rule")


def due_groups(cluster: Cluster, now: datetime) -> QuerySet[Group]:
    """Those whose verdict or rates time alone can change."""
    is_resting = Q(verdict=Verdict.OK, moved_at__lt=now - timedelta(seconds=QUIET_AFTER_S))
    is_rate_open = Q(in_per_s=None, rate_base_at__isnull=False)
    return cluster.groups.filter(Q(lag__gt=0) | Q(in_per_s__gt=0) | Q(out_per_s__gt=0) | is_rate_open | is_resting)


def measure_groups(groups: Iterable[Group], now: datetime, *, is_changed: bool, is_watched: bool) -> list[Group]:
    """Writes sums, rates, verdicts and history; the groups that a page would now draw otherwise.

    `is_changed`: their rows were changed just now, so each counts as changed whatever its sums say. `is_watched`:
    rows are true up to now; else up to when they were seen.
    """
    return [
        group
        for batch in chunks(groups)
        for group in _measure_batch(batch, now, is_changed=is_changed, is_watched=is_watched)
    ]


def measure_topics(topics: Iterable[Topic], now: datetime, *, is_watched: bool) -> None:
    """Writes the sums over the queues of each topic, and how much comes in."""
    for batch in chunks(topics):
        sums = {row["topic_id"]: row for row in _queue_sums(batch)}
        measured = [topic for topic in batch if topic.pk in sums]
        for topic in measured:
            _measure_topic(topic, sums[topic.pk], now, is_watched=is_watched)
        update(Topic, measured, _MEASURED_TOPIC_FIELDS)


def due_topics(cluster: Cluster) -> QuerySet[Topic]:
    """Those whose rate time alone can change."""
    return cluster.topics.filter(Q(in_per_s__gt=0) | Q(in_per_s=None, rate_base_at__isnull=False))


def _queue_sums(topics: Sequence[Topic]) -> Iterable[Mapping[str, Any]]:
    return (
        TopicQueue.objects.filter(topic__in=topics)
        .values("topic_id")
        .annotate(
            stored=Sum(F("max_offset") - F("min_offset")),
            total=Sum("max_offset"),
            stored_last=Max("last_stored_at"),
            seen_first=Min("seen_at"),
        )
    )


def _measure_topic(topic: Topic, sums: Mapping[str, Any], now: datetime, *, is_watched: bool) -> None:
    """Sets the fields of _MEASURED_TOPIC_FIELDS."""
    topic.message_count, topic.max_total = sums["stored"], sums["total"]
    topic.last_stored_at, topic.offsets_seen_at = sums["stored_last"], sums["seen_first"]
    at = now if is_watched else sums["seen_first"]
    known = Rate(topic.rate_base_at, topic.rate_base_total, topic.in_per_s)
    topic.rate_base_at, topic.rate_base_total, topic.in_per_s = rate(known, sums["total"], at)


def note_gap(cluster: Cluster, now: datetime) -> None:
    """Where nobody looked for a while, the histories say from then on "not known" instead of drawing on."""
    since = cluster.last_synced_at
    if since is None or now - since < GAP_MIN:
        return
    unknown = history.LagSample(int(since.timestamp()), None)
    for batch in chunks(LagHistory.objects.filter(group__cluster=cluster)):
        for row in batch:
            row.samples = history.appended(row.samples, unknown)
        update(LagHistory, batch, ["samples"])
    cluster.lag_history = history.appended(cluster.lag_history, unknown)
    cluster.save(update_fields=["lag_history"])


def note_cluster_lag(cluster: Cluster, now: datetime) -> None:
    """One sample of the sum over all groups that pages count."""
    lag = cluster.groups.filter(is_system=False).aggregate(lag=Sum("lag"))["lag"]
    sample = history.LagSample(int(now.timestamp()), lag)
    cluster.lag_history = history.appended(cluster.lag_history, sample)
    cluster.save(update_fields=["lag_history"])


def _measure_batch(groups: Sequence[Group], now: datetime, *, is_changed: bool, is_watched: bool) -> list[Group]:
    queues: defaultdict[int, list[QueueOffset]] = defaultdict(list)
    for queue in QueueOffset.objects.filter(group__in=groups):
        if queue.is_subscribed is not False:
            queues[queue.group_id].append(queue)
    histories = LagHistory.objects.in_bulk([group.pk for group in groups])
    drawn, written, written_histories = [], [], []
    for group in groups:
        packed = histories[group.pk].samples if group.pk in histories else b""
        shown, measured = _values(group, _SHOWN_FIELDS), _values(group, _MEASURED_FIELDS)
        _measure(group, queues[group.pk], packed, now, is_watched=is_watched)
        if is_changed or shown != _values(group, _SHOWN_FIELDS):
            group.revision += 1
            drawn.append(group)
        if measured != _values(group, _MEASURED_FIELDS):
            written.append(group)
        longer = history.appended(packed, history.LagSample(int(now.timestamp()), group.lag))
        if longer != packed:
            written_histories.append(LagHistory(group=group, samples=longer, updated_at=now))
    update(Group, written, _MEASURED_FIELDS)
    LagHistory.objects.bulk_create(
        written_histories,
        update_conflicts=True,
        unique_fields=["group"],
        update_fields=["samples", "updated_at"],
    )
    return drawn


def _values(group: Group, names: Sequence[str]) -> list[object]:
    return [getattr(group, name) for name in names]


def _measure(
    group: Group, queues: Sequence[QueueOffset], packed: bytes | memoryview, now: datetime, *, is_watched: bool
) -> None:
    """Sets the fields of _MEASURED_FIELDS but `revision`."""
    known = [queue for queue in queues if queue.lag is not None]
    group.queue_count = len(queues)
    group.unknown_queue_count = len(queues) - len(known)
    group.lag = sum(queue.lag or 0 for queue in known) if known else None
    longest = min(
        (queue for queue in known if queue.behind_since), key=lambda queue: queue.behind_since or now, default=None
    )
    group.behind_since = longest.behind_since if longest else None
    group.behind_method = longest.behind_method if longest else WaitingMethod.NONE
    group.moved_at = max((queue.moved_at for queue in queues if queue.moved_at), default=group.moved_at)
    # A sum is as old as its oldest part.
    group.offsets_seen_at = min((queue.seen_at for queue in queues), default=group.offsets_seen_at)
    _measure_rates(group, known, now if is_watched else group.offsets_seen_at or now)
    _judge(group, known, packed, now)


def _measure_rates(group: Group, known: Sequence[QueueOffset], at: datetime) -> None:
    max_total = sum(queue.max_offset or 0 for queue in known)
    committed_total = sum(queue.committed_offset or 0 for queue in known)
    queues = _fingerprint(known)
    if queues != group.rate_base_queues:
        group.rate_base_queues, group.rate_base_at = queues, at
        group.rate_base_max, group.rate_base_committed = max_total, committed_total
        return
    came_in = rate(Rate(group.rate_base_at, group.rate_base_max, group.in_per_s), max_total, at)
    went_out = rate(Rate(group.rate_base_at, group.rate_base_committed, group.out_per_s), committed_total, at)
    group.rate_base_at, group.rate_base_max, group.in_per_s = came_in
    _, group.rate_base_committed, group.out_per_s = went_out


def _fingerprint(queues: Sequence[QueueOffset]) -> int:
    """The same for the same queues, whatever their order."""
    names = sorted(f"{queue.topic_name} {queue.broker_name} {queue.queue_id}" for queue in queues)
    return crc32("\n".join(names).encode())


def _judge(group: Group, known: Sequence[QueueOffset], packed: bytes | memoryview, now: datetime) -> None:
    judgement = judge(
        GroupFacts(
            now=now,
            is_broadcast=group.message_model == _BROADCASTING,
            member_count=group.member_count,
            lag=group.lag,
            lag_before=history.lag_at(packed, int(now.timestamp()) - GROWTH_WINDOW_S),
            behind_since=group.behind_since,
            standing_since=_standing_since(known),
            moved_at=group.moved_at,
        )
    )
    if group.verdict_since is None or group.verdict != judgement.verdict:
        group.verdict_since = now
    group.verdict, group.verdict_rank = judgement.verdict, judgement.rank
    group.verdict_rule, group.verdict_facts = judgement.rule, judgement.numbers


def _standing_since(known: Sequence[QueueOffset]) -> datetime | None:
    """Of the queues with messages waiting: since when the longest-standing has neither moved nor been empty."""
    moments = [
        max(queue.committed_since, queue.behind_since)
        for queue in known
        if queue.lag and queue.committed_since and queue.behind_since
    ]
    return min(moments, default=None)
