"""Appends to the history what happened beside what was sampled: rebalances, dead letters, subscriptions that differed,
and how long deliveries took.

An hour's file is written anew when what is known of the hour has changed, as when a dead letter is indexed late; an
hour in which nothing happened has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from heapq import merge
from operator import itemgetter

import pyarrow as pa
import pyarrow.parquet as pq
from django.db.models import Q

from consumer.delivery.buckets import bounds_ms
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import FailureHour
from mqadmin.lag.deliveries import delivery_counts
from mqadmin.lag.models import SamplingState
from mqadmin.rebalances.models import RebalanceEvent
from mqadmin.rebalances.retention import KEPT_FOR
from mqadmin.reports import late_data
from mqadmin.reports.history import EVENTS, HOUR_S, SCHEMAS, History, hour_of
from mqadmin.reports.models import ConflictTime, RebalanceOfGone
from mqadmin.reports.receivers import moved_queues, rebalances_observed

# What is told later than this of an hour is not in the history, unless nothing was appended meanwhile: then it is
# looked for as far back as rebalances are kept, which of all of it go first.
HOURS_BACK, HOURS_BACK_MAX = 48, KEPT_FOR // timedelta(hours=1)
_HOUR = timedelta(hours=1)
# How long after an hour more may be told of it; then its file is complete, and its rows are read no more. A member
# keeps for 3 hours what a database that is away did not take.
_TOLD_WITHIN = {"deliveries": timedelta(hours=4)}
Row = tuple[object, ...]


def append_events(history: History, cluster: Cluster, now: datetime) -> int:
    """Writes the files of hours of which something new is known; returns how many rows those have."""
    row_count = 0
    for number in range(_hours_back(cluster, now), -1, -1):
        hour = hour_of(now) - number * _HOUR
        for kind in EVENTS:
            if kind in _TOLD_WITHIN and history.is_complete(cluster.name, hour, kind):
                continue
            rows = list(_ROWS[kind](cluster, hour, min(hour + _HOUR, now)))
            table = _table(SCHEMAS[kind], rows)
            is_complete = kind in _TOLD_WITHIN and now >= hour + _HOUR + _TOLD_WITHIN[kind]
            is_new = bool(rows) and not _is_there(history, kind, cluster.name, hour, table)
            if is_new:
                late_data.note(cluster, hour.date(), now)
            if is_new or (rows and is_complete):
                with history.writing(kind, cluster.name, hour, is_complete=is_complete) as writer:
                    writer.write_table(table)
                row_count += len(rows)
    return row_count


def _hours_back(cluster: Cluster, now: datetime) -> int:
    states = SamplingState.objects.filter(cluster=cluster).values_list("appended_until_s", flat=True)
    appended_until_s = states.first()
    if appended_until_s is None:
        return HOURS_BACK
    return max(HOURS_BACK, min(HOURS_BACK_MAX, -(-int(now.timestamp() - appended_until_s) // HOUR_S)))


def _is_there(history: History, kind: str, cluster: str, hour: datetime, table: pa.Table) -> bool:
    try:
        return bool(pq.read_table(history.path(kind, cluster, hour), partitioning=None).equals(table))
    except (pa.ArrowException, OSError):
        return False


def _table(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _rebalances(cluster: Cluster, since: datetime, until: datetime) -> Iterator[Row]:
    observed = RebalanceEvent.objects.filter(cluster=cluster, at__gte=since, at__lt=until)
    events = rebalances_observed(observed).select_related("group")
    present = (
        (cluster.name, one.group.name, one.at, one.kind, one.client_id, moved_queues(one), one.source)
        for one in events.order_by("at", "pk").iterator()
    )
    kept = RebalanceOfGone.objects.filter(cluster=cluster, at__gte=since, at__lt=until).order_by("at", "pk")
    gone = kept.values_list("group_name", "at", "kind", "client_id", "moved_queues", "source")
    yield from merge(present, ((cluster.name, *one) for one in gone.iterator()), key=itemgetter(2))


def _dead_letters(cluster: Cluster, since: datetime, until: datetime) -> Iterator[Row]:
    hours = FailureHour.objects.filter(failure__cluster=cluster, hour__gte=since, hour__lt=until)
    for one in hours.select_related("failure").order_by("failure__group_name", "failure_id").iterator():
        what = one.failure
        yield (
            *(cluster.name, what.group_name, one.hour, what.origin_topic, what.tag),
            *(what.failure_class, what.failure_text, one.dead_count),
        )


def _conflicts(cluster: Cluster, since: datetime, until: datetime) -> Iterator[Row]:
    lasted = Q(until=None) | Q(until__gt=since)
    for one in ConflictTime.objects.filter(lasted, cluster=cluster, since__lt=until).order_by("since", "pk"):
        at, ended = max(one.since, since), min(one.until or until, until)
        yield cluster.name, one.group_name, at, ended, one.kind, one.topic_name


def _deliveries(cluster: Cluster, since: datetime, _until: datetime) -> Iterator[Row]:
    """What members of our runtime consumed in an hour, added up; they say which hour, by their own clocks."""
    for (group, topic), counts in delivery_counts(cluster, since).items():
        bounds = [bounds_ms(bucket) for bucket, _count in counts]
        yield (
            *(cluster.name, group, since, topic),
            *([first for first, _beyond in bounds], [beyond for _first, beyond in bounds]),
            [count for _bucket, count in counts],
        )


_ROWS: dict[str, Callable[[Cluster, datetime, datetime], Iterator[Row]]] = {
    "rebalances": _rebalances,
    "dead_letters": _dead_letters,
    "conflicts": _conflicts,
    "deliveries": _deliveries,
}
