"""What a group's rows add up to: lag, how long behind, rates, verdict, history. And a topic's: how much comes in.

Called when rows changed, and when a row is due: `due_at` is the next moment at which time alone can change something (a
rate that falls when nothing comes any more, a verdict that is a matter of time, a sample of the history that waits for
its half minute), null when nothing can. Only rows whose figures changed are written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

from django.db.models import F, Max, Min, Sum

from mqadmin.clusters.bulk import chunks, update
from mqadmin.clusters.models import Cluster, Group, QueueOffset, Topic, TopicQueue, WaitingMethod
from mqadmin.clusters.progress import attach_ends
from mqadmin.lag import history, rates
from mqadmin.lag.models import LagHistory
from mqadmin.lag.rates import Rate, rate
from mqadmin.lag.verdicts import GROWTH_WINDOW_S, QUIET_AFTER_S, SLOW_AFTER_S, STALLED_AFTER_S, VerdictInput, judge

_BROADCASTING = "BROADCASTING"
# When an observed moment is written into the row: earlier it would cost a write for every message.
_KEPT_AFTER = timedelta(seconds=SLOW_AFTER_S)
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
    "max_total",
    "committed_total",
    "verdict",
    "verdict_rank",
    "verdict_since",
    "verdict_rule",
    "verdict_numbers",
    "due_at",
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
    "due_at",
)
# What a page shows of a group; the totals stand for the offsets in its table of queues.
_SHOWN_FIELDS = (
    "lag",
    "unknown_queue_count",
    "behind_since",
    "in_per_s",
    "out_per_s",
    "max_total",
    "committed_total",
    "verdict",
    "verdict_rule",
)


@dataclass(slots=True)
class Measured:
    """`shown`: the groups that a page would now draw otherwise."""

    shown: list[Group] = field(default_factory=list)
    written_count: int = 0


def measure_groups(
    cluster: Cluster, groups: Iterable[Group], now: datetime, *, is_changed: bool, is_watched: bool
) -> Measured:
    """Writes sums, rates, verdicts and histories of groups of one cluster.

    `is_changed`: their rows were changed just now, so each counts as changed whatever its sums say. `is_watched`: rows
    are true up to now, but those of brokers that are away; else up to when they were seen.
    """
    found = list(groups)
    measured = Measured()
    queues = _queues(cluster.pk, found)
    histories = dict(LagHistory.objects.filter(group__in=found).values_list("group_id", "samples"))
    written, written_histories, kept = [], [], []
    has_other_lag = False
    for group in found:
        shown, before = _values(group, _SHOWN_FIELDS), _values(group, _MEASURED_FIELDS)
        lag = group.lag
        packed = histories.get(group.pk, b"")
        longer = _measure(group, queues[group.pk], packed, now, is_watched=is_watched, away=cluster.brokers_away)
        has_other_lag |= lag != group.lag
        if is_changed or shown != _values(group, _SHOWN_FIELDS):
            group.revision += 1
            measured.shown.append(group)
        if before != _values(group, _MEASURED_FIELDS):
            written.append(group)
        if longer is not None:
            written_histories.append(LagHistory(group=group, samples=longer, updated_at=now))
        kept += [queue for queue in queues[group.pk] if _keep_behind(queue, now)]
    update(Group, written, _MEASURED_FIELDS)
    update(QueueOffset, kept, ["behind_since", "behind_method"])
    LagHistory.objects.bulk_create(
        written_histories,
        update_conflicts=True,
        unique_fields=["group"],
        update_fields=["samples", "updated_at"],
    )
    if has_other_lag:
        Cluster.objects.filter(pk=cluster.pk, lag_due_at=None).update(lag_due_at=now)
    measured.written_count = len(written) + len(kept) + len(written_histories)
    return measured


def measure_topics(cluster: Cluster, topics: Iterable[Topic], now: datetime, *, is_watched: bool) -> int:
    """Writes the sums over the queues of each topic, and how much comes in; returns how many rows that were."""
    written_count = 0
    for batch in chunks(topics):
        sums = {row["topic_id"]: row for row in _queue_sums(batch)}
        written = []
        for topic in batch:
            if topic.pk not in sums:
                continue
            before = [getattr(topic, name) for name in _MEASURED_TOPIC_FIELDS]
            _measure_topic(topic, sums[topic.pk], now, is_watched=is_watched, away=cluster.brokers_away)
            if before != [getattr(topic, name) for name in _MEASURED_TOPIC_FIELDS]:
                written.append(topic)
        update(Topic, written, _MEASURED_TOPIC_FIELDS)
        written_count += len(written)
    return written_count


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


def _measure_topic(
    topic: Topic, sums: Mapping[str, Any], now: datetime, *, is_watched: bool, away: Container[str]
) -> None:
    """Sets the fields of _MEASURED_TOPIC_FIELDS. What comes in while a broker is away is not known, so not 0."""
    topic.message_count, topic.max_total = sums["stored"], sums["total"]
    topic.last_stored_at, topic.offsets_seen_at = sums["stored_last"], sums["seen_first"]
    if any(broker in away for broker in topic.of_brokers):
        topic.due_at = None
        return
    at = now if is_watched else sums["seen_first"]
    known = Rate(topic.rate_base_at, topic.rate_base_total, topic.in_per_s)
    topic.rate_base_at, topic.rate_base_total, topic.in_per_s = rate(known, sums["total"], at)
    topic.due_at = rates.due_at(topic.rate_base_at, [topic.in_per_s], now)


def _queues(cluster_id: int, groups: Sequence[Group]) -> defaultdict[int, list[QueueOffset]]:
    """Returns, by group, the rows that count: those of topics that its members subscribe to, where that is known."""
    queues: defaultdict[int, list[QueueOffset]] = defaultdict(list)
    for queue in attach_ends(cluster_id, QueueOffset.objects.filter(group__in=groups)):
        if queue.is_subscribed is not False:
            queues[queue.group_id].append(queue)
    return queues


def _values(group: Group, names: Sequence[str]) -> list[object]:
    return [getattr(group, name) for name in names]


def _measure(
    group: Group,
    queues: Sequence[QueueOffset],
    packed: bytes | memoryview,
    now: datetime,
    *,
    is_watched: bool,
    away: Container[str],
) -> bytes | None:
    """Sets the fields of _MEASURED_FIELDS but `revision`; returns the history where it has a further sample.

    Whether a queue of a broker that is away stands is not known: it bears on the sums, and on no verdict or rate.
    """
    known = [queue for queue in queues if queue.lag is not None]
    group.queue_count = len(queues)
    group.unknown_queue_count = len(queues) - len(known)
    group.lag = sum(queue.lag or 0 for queue in known) if known else None
    longest = min(
        (behind for queue in known if (behind := queue.behind).since), key=lambda one: one.since or now, default=None
    )
    group.behind_since = longest.since if longest else None
    group.behind_method = longest.method if longest else WaitingMethod.NONE
    group.moved_at = max((queue.moved_at for queue in queues if queue.moved_at), default=group.moved_at)
    # A sum is as old as its oldest part.
    group.offsets_seen_at = min((queue.seen_at for queue in queues), default=group.offsets_seen_at)
    group.max_total = sum(queue.max_offset or 0 for queue in known)
    group.committed_total = sum(queue.committed_offset or 0 for queue in known)
    answering = [queue for queue in known if queue.broker_name not in away]
    is_any_away = len(answering) < len(known)
    if not is_any_away:
        _measure_rates(group, known, now if is_watched else group.offsets_seen_at or now)
    standing_since = _standing_since(answering)
    _judge(group, standing_since, packed, now, is_any_away=is_any_away)
    sample = history.LagSample(int(now.timestamp()), group.lag)
    is_news, is_room = history.is_news(packed, sample), history.has_room(packed, sample.at_s)
    group.due_at = min(
        _due_moments(
            group, standing_since, packed, now, is_sample_waiting=is_news and not is_room, has_rates=not is_any_away
        ),
        default=None,
    )
    return history.appended(packed, sample) if is_news and is_room else None


def _measure_rates(group: Group, known: Sequence[QueueOffset], at: datetime) -> None:
    max_total, committed_total = group.max_total or 0, group.committed_total or 0
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
    """Returns a digest of the queues, whatever their order."""
    names = sorted(f"{queue.topic_name} {queue.broker_name} {queue.queue_id}" for queue in queues)
    return crc32("\n".join(names).encode())


def _judge(
    group: Group, standing_since: datetime | None, packed: bytes | memoryview, now: datetime, *, is_any_away: bool
) -> None:
    judgement = judge(
        VerdictInput(
            now=now,
            is_broadcast=group.message_model == _BROADCASTING,
            member_count=group.member_count,
            lag=group.lag,
            lag_before=history.lag_at(packed, int(now.timestamp()) - GROWTH_WINDOW_S),
            behind_since=group.behind_since,
            standing_since=standing_since,
            moved_at=group.moved_at,
            is_any_broker_away=is_any_away,
        )
    )
    if group.verdict_since is None or group.verdict != judgement.verdict:
        group.verdict_since = now
    group.verdict, group.verdict_rank = judgement.verdict, judgement.rank
    group.verdict_rule, group.verdict_numbers = judgement.rule, judgement.numbers


def _standing_since(known: Sequence[QueueOffset]) -> datetime | None:
    """Returns since when the longest-standing queue with messages waiting has neither moved nor been empty."""
    moments = [
        max(queue.committed_since, since)
        for queue in known
        if queue.lag and queue.committed_since and (since := queue.behind.since)
    ]
    return min(moments, default=None)


def _due_moments(
    group: Group,
    standing_since: datetime | None,
    packed: bytes | memoryview,
    now: datetime,
    *,
    is_sample_waiting: bool,
    has_rates: bool,
) -> Iterator[datetime]:
    """Yields when time alone may change a figure: a rate, a verdict by its rules, the history."""
    rate_due_at = rates.due_at(group.rate_base_at, [group.in_per_s, group.out_per_s], now)
    if has_rates and rate_due_at is not None:
        yield rate_due_at
    for since, after_s in (
        (standing_since, STALLED_AFTER_S),
        (group.behind_since, SLOW_AFTER_S),
        (group.moved_at, QUIET_AFTER_S),
    ):
        if since is not None and (moment := since + timedelta(seconds=after_s)) > now:
            yield moment
    if is_sample_waiting:
        yield datetime.fromtimestamp(history.next_bucket_s(int(now.timestamp())), UTC)
    if group.lag:
        # The lag that growth is compared with is another one when a sample leaves the window of growth.
        window_s = int(now.timestamp()) - GROWTH_WINDOW_S
        for sample in history.unpack(packed):
            if sample.at_s > window_s:
                yield datetime.fromtimestamp(sample.at_s + GROWTH_WINDOW_S, UTC)
                break


def _keep_behind(queue: QueueOffset, now: datetime) -> bool:
    """Writes into the row since when its next message has been waiting, once; returns whether it did."""
    since, method = queue.behind.since, queue.behind.method
    if queue.behind_since is not None or since is None:
        return False
    if method != WaitingMethod.STORE_TIME and now - since < _KEPT_AFTER:
        return False
    queue.behind_since, queue.behind_method = since, method
    return True
