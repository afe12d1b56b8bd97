"""What a group's rows add up to: lag, how long behind, rates, verdict, history. And a topic's: how much comes in.

Called when rows changed, and when a row is due: `due_at` is the next moment at which time alone can change something (a
rate that falls when nothing comes any more, a verdict that is a matter of time, a sample of the history that waits for
its half minute), null when nothing can. Only rows whose figures changed are written.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from django.db.models import F, Max, Min, OuterRef, Subquery, Sum

from mqadmin.clusters.bulk import Change, chunks, update, write
from mqadmin.clusters.figures import Behind
from mqadmin.clusters.models import BROADCASTING, Cluster, Group, QueueOffset, Topic, TopicQueue, Verdict, WaitingMethod
from mqadmin.lag import broadcasting, draining, failing, history, rates, sums
from mqadmin.lag.failing import Failing, FailingSample, Totals
from mqadmin.lag.failing_totals import topic_ends, totals_of
from mqadmin.lag.in_flight import InFlight, in_flight
from mqadmin.lag.members_progress import held_queues
from mqadmin.lag.models import LagHistory
from mqadmin.lag.rates import Rate, rate
from mqadmin.lag.signals import Turn
from mqadmin.lag.sums import Sums
from mqadmin.lag.verdicts import (
    GROWTH_WINDOW_S,
    QUIET_AFTER_S,
    SETTLE_S,
    STALLED_AFTER_S,
    VerdictInput,
    judge,
    settled,
)
from mqadmin.objectives.selectors import objectives_of
from mqadmin.objectives.values import DEFAULT_LAG_S, Objectives

# When an observed moment is written into the row: earlier it would cost a write for every message.
_KEPT_AFTER = timedelta(seconds=60)
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
    "drains_per_s",
    "drain_confidence",
    "died_lately",
    "retried_lately",
    "verdict",
    "verdict_rank",
    "verdict_since",
    "verdict_rule",
    "verdict_numbers",
    "calm_since",
    "allowed_lag_s",
    "allowed_lag",
    "objective_of",
    "beyond_objective_since",
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
    "drains_per_s",
    "died_lately",
    "retried_lately",
    "verdict",
    "verdict_rule",
    "allowed_lag_s",
    "allowed_lag",
)
_MEASURED_VALUES, _SHOWN_VALUES = attrgetter(*_MEASURED_FIELDS), attrgetter(*_SHOWN_FIELDS)


class _History(NamedTuple):
    """The row of a `LagHistory`; without models, as there are thousands."""

    samples: bytes = b""
    failing: bytes = b""


@dataclass(slots=True)
class Measured:
    """`shown`: the groups that a page would now draw otherwise; `turned`, `crossed`: see `GroupsMeasured`."""

    shown: list[Group] = field(default_factory=list)
    turned: list[Turn] = field(default_factory=list)
    crossed: list[Group] = field(default_factory=list)
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
    rows = broadcasting.read(cluster.pk, [group.pk for group in found])
    histories = _histories([group.pk for group in found])
    topics = topic_ends(cluster, [group.name for group in found])
    written, kept = [], []
    # Places in _MEASURED_FIELDS: most of a group is as it was, and each column costs.
    otherwise: set[int] = set()
    written_histories: dict[int, _History] = {}
    has_other_lag = False
    objectives = objectives_of(cluster)
    totals = {group.pk: sums.sums(rows.get(group.pk, sums.GroupRows()), cluster.brokers_away) for group in found}
    held = held_queues([pk for pk, total in totals.items() if _stands(total.standing_since, now)])
    for group in found:
        group.cluster = cluster
        shown, before = _SHOWN_VALUES(group), _MEASURED_VALUES(group)
        lag, verdict, judged_at = group.lag, group.verdict, group.verdict_since
        beyond_since = group.beyond_objective_since
        kept_before, total = histories.get(group.pk, _History()), totals[group.pk]
        packed = kept_before.samples
        _allow(group, objectives)
        flying = in_flight(total.standings, held.get(group.pk, {}), now, STALLED_AFTER_S)
        failing_now = _failing(kept_before.failing, totals_of(group.name, total.committed_total, topics), now)
        failed = failing.counted(failing_now, int(now.timestamp()))
        longer = _measure(group, total, flying, failed, packed, now, is_watched=is_watched)
        has_other_lag |= lag != group.lag
        group.beyond_objective_since = _beyond_since(group, now)
        if (beyond_since is None) != (group.beyond_objective_since is None):
            measured.crossed.append(group)
        # The first verdict of a group is no news.
        if verdict != group.verdict and judged_at is not None:
            measured.turned.append(Turn(group, verdict))
        if is_changed or shown != _SHOWN_VALUES(group):
            group.revision += 1
            measured.shown.append(group)
        if before != (after := _MEASURED_VALUES(group)):
            written.append(group)
            otherwise.update(place for place, value in enumerate(after) if value != before[place])
        if longer is not None or failing_now != kept_before.failing:
            written_histories[group.pk] = _History(packed if longer is None else longer, failing_now)
        kept += [_kept(pk, behind) for pk, behind in total.waiting if _is_kept(behind, now)]
    update(Group, written, [_MEASURED_FIELDS[place] for place in sorted(otherwise)])
    write(QueueOffset, kept)
    _write_histories(written_histories, known=histories, now=now)
    if has_other_lag:
        Cluster.objects.filter(pk=cluster.pk, lag_due_at=None).update(lag_due_at=now)
    measured.written_count = len(written) + len(kept) + len(written_histories)
    return measured


def renew_ages(group_ids: Iterable[int]) -> int:
    """Writes, of groups at rest whose queues were seen again and stand, up to when that is true; returns rows written.

    What `measure_groups` would write of them, for all at once.
    """
    oldest = (
        QueueOffset.objects.filter(group=OuterRef("pk"))
        .exclude(is_subscribed=False)
        .order_by("seen_at")
        .values("seen_at")[:1]
    )
    return sum(
        Group.objects.filter(pk__in=batch).update(offsets_seen_at=Subquery(oldest), rate_base_at=Subquery(oldest))
        for batch in chunks(group_ids)
    )


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
    # Where the queues are sampled, the rate changes with the next sample, not by time alone.
    topic.due_at = rates.due_at(topic.rate_base_at, [topic.in_per_s], now) if is_watched else None


def _measure(
    group: Group,
    total: Sums,
    flying: InFlight | None,
    failed: Failing,
    packed: bytes | memoryview,
    now: datetime,
    *,
    is_watched: bool,
) -> bytes | None:
    """Sets the fields of _MEASURED_FIELDS but `revision`; returns the history where it has a further sample.

    Whether a queue of a broker that is away stands is not known: it bears on the sums, and on no verdict or rate.
    """
    group.queue_count = total.queue_count
    group.unknown_queue_count = total.queue_count - total.known_count
    group.lag = total.lag
    group.behind_since, group.behind_method = total.behind.since, total.behind.method
    group.moved_at = total.moved_at or group.moved_at
    group.offsets_seen_at = total.seen_at or group.offsets_seen_at
    group.max_total, group.committed_total = total.max_total, total.committed_total
    # What a member said is true when it said so, however its cluster is observed.
    is_watched &= not total.of_member
    if not total.is_any_away:
        _measure_rates(group, total, now if is_watched else group.offsets_seen_at or now)
    pace = draining.pace(packed, int(now.timestamp()), group.lag or None)
    group.drains_per_s = pace.per_s
    group.drain_confidence = "" if pace.per_s is None else pace.confidence
    group.died_lately, group.retried_lately = failed.died, failed.retried
    _judge(group, total, flying, failed, packed, now)
    sample = history.LagSample(int(now.timestamp()), group.lag)
    is_news, is_room = history.is_news(packed, sample), history.has_room(packed, sample.at_s)
    # Where the rows are sampled, a rate changes with the next sample, not by time alone.
    has_rates = is_watched and not total.is_any_away
    group.due_at = min(
        _due_moments(group, total, flying, packed, now, is_sample_waiting=is_news and not is_room, has_rates=has_rates),
        default=None,
    )
    return history.appended(packed, sample) if is_news and is_room else None


def _allow(group: Group, objectives: Objectives) -> None:
    objective = objectives.of_group(group.name)
    group.allowed_lag_s, group.allowed_lag = objective.lag_s, objective.lag
    group.objective_of = objective.of


def _beyond_since(group: Group, now: datetime) -> datetime | None:
    """Returns since when the group has been beyond its objective; None: it is not.

    It is back when no more than half of what is allowed waits, or for half as long, so that it does not flap. While
    that is not known, it is as it was.
    """
    since = group.beyond_objective_since
    is_within = group.is_within_objective(now, share=1.0 if since is None else 0.5)
    if is_within is None:
        return since
    return None if is_within else since or now


def _measure_rates(group: Group, total: Sums, at: datetime) -> None:
    if total.fingerprint != group.rate_base_queues:
        group.rate_base_queues, group.rate_base_at = total.fingerprint, at
        group.rate_base_max, group.rate_base_committed = total.max_total, total.committed_total
        return
    came_in = rate(Rate(group.rate_base_at, group.rate_base_max, group.in_per_s), total.max_total, at)
    went_out = rate(Rate(group.rate_base_at, group.rate_base_committed, group.out_per_s), total.committed_total, at)
    group.rate_base_at, group.rate_base_max, group.in_per_s = came_in
    _, group.rate_base_committed, group.out_per_s = went_out


def _stands(since: datetime | None, now: datetime) -> bool:
    return since is not None and (now - since).total_seconds() >= STALLED_AFTER_S


def _failing(known: bytes, totals: Totals | None, now: datetime) -> bytes:
    """Returns what is kept of the group's failures, with what its topics hold now."""
    return known if totals is None else failing.appended(known, FailingSample(int(now.timestamp()), totals))


def _judge(
    group: Group,
    total: Sums,
    flying: InFlight | None,
    failed: Failing,
    packed: bytes | memoryview,
    now: datetime,
) -> None:
    known = VerdictInput(
        now=now,
        is_broadcast=group.message_model == BROADCASTING,
        member_count=group.member_count,
        lag=group.lag,
        lag_before=history.lag_at(packed, int(now.timestamp()) - GROWTH_WINDOW_S),
        behind_since=group.behind_since,
        seen_until=group.behind.seen_until(now),
        standing_since=total.standing_since,
        moved_at=group.moved_at,
        is_any_broker_away=total.is_any_away,
        rewound_count=total.rewound_count,
        in_flight=flying,
        failing=failed,
        allowed_lag_s=group.allowed_lag_s or DEFAULT_LAG_S,
        allowed_lag=group.allowed_lag,
        was=Verdict(group.verdict),
    )
    judgement, group.calm_since = settled(known, judge(known), group.calm_since)
    if group.verdict_since is None or group.verdict != judgement.verdict:
        group.verdict_since = now
    group.verdict, group.verdict_rank = judgement.verdict, judgement.rank
    group.verdict_rule, group.verdict_numbers = judgement.rule, judgement.numbers


def _due_moments(
    group: Group,
    total: Sums,
    flying: InFlight | None,
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
    if flying is not None and flying.until > now:
        yield flying.until
    if group.died_lately or group.retried_lately:
        yield now + timedelta(seconds=failing.AGAIN_S)
    for since, after_s in (
        (total.standing_since, STALLED_AFTER_S),
        (group.behind_since, group.allowed_lag_s or DEFAULT_LAG_S),
        (group.calm_since, SETTLE_S),
        (group.moved_at, QUIET_AFTER_S),
    ):
        if since is not None and (moment := since + timedelta(seconds=after_s)) > now:
            yield moment
    if is_sample_waiting:
        yield datetime.fromtimestamp(history.next_bucket_s(int(now.timestamp())), UTC)
    if group.lag:
        # The lag that growth is compared with is another one when a sample leaves the window of growth.
        window_s = int(now.timestamp()) - GROWTH_WINDOW_S
        if (sample := history.first_after(packed, window_s)) is not None:
            yield datetime.fromtimestamp(sample.at_s + GROWTH_WINDOW_S, UTC)


def _is_kept(behind: Behind, now: datetime) -> bool:
    """Tells whether the row is to say since when its next message has been waiting."""
    if behind.since is None:
        return False
    return behind.method == WaitingMethod.STORE_TIME or now - behind.since >= _KEPT_AFTER


def _kept(pk: int, behind: Behind) -> Change:
    return Change(pk, {"behind_since": behind.since, "behind_method": behind.method})


def _histories(group_ids: Sequence[int]) -> dict[int, _History]:
    rows = LagHistory.objects.filter(group__in=group_ids).values_list("group_id", "samples", "failing")
    return {pk: _History(bytes(samples), bytes(failing)) for pk, samples, failing in rows}


def _write_histories(rows: Mapping[int, _History], known: Container[int], now: datetime) -> None:
    """Writes new histories and longer ones, by group; `known`: the groups that have one."""
    LagHistory.objects.bulk_create(
        [LagHistory(group_id=pk, updated_at=now, **row._asdict()) for pk, row in rows.items() if pk not in known],
        update_conflicts=True,
        unique_fields=["group"],
        update_fields=["samples", "failing", "updated_at"],
    )
    write(LagHistory, [Change(pk, {"updated_at": now, **row._asdict()}) for pk, row in rows.items() if pk in known])
