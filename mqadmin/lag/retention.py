"""Keeps the hot window small: every sample for six hours, one a minute for two days.

What the history has not got yet stays for four days; what is removed then is noted as lost, for the history to tell.

A step is bounded in statements and rows, so that SQLite's only writer is free again soon; what one step leaves, the
next ones do. Of a minute the last sample of each group and topic stays.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mqadmin.clusters.bulk import chunks
from mqadmin.clusters.models import Cluster
from mqadmin.lag import gone_groups
from mqadmin.lag.models import GroupSample, SampledSpan, SamplingState

RAW_FOR_S = 6 * 3600
KEPT_FOR_S = 48 * 3600
# What was not appended to the history: a long weekend without reports' worker, or with a full disk.
UNAPPENDED_FOR_S = 96 * 3600
MINUTE_S = 60
HOUR_S = 3600
# Of data, thinned by one step: a step runs twice a minute, so it catches up.
MINUTES_PER_STEP = 3
# Rows that one step deletes because of their age: four times what 10,000 groups write in a cycle.
REMOVED_PER_STEP = 40_000
SPANS_PER_STEP = 1_000


def within_window(moment: datetime, now: datetime) -> datetime:
    """Clamps a moment to the ends of the hot window."""
    return max(min(moment, now), now - timedelta(seconds=KEPT_FOR_S))


def step(cluster: Cluster, now: datetime) -> int:
    """Thins and removes what is due; returns how many rows went."""
    now_s = int(now.timestamp())
    return _thin(cluster, now_s - RAW_FOR_S) + _remove(cluster, _kept_since_s(cluster, now_s))


def _kept_since_s(cluster: Cluster, now_s: int) -> int:
    """Returns from when on samples stay. Notes as lost what was not appended and goes all the same."""
    since_s = now_s - KEPT_FOR_S
    found = SamplingState.objects.filter(cluster=cluster).values_list("appended_until_s", flat=True).first()
    if found is None or found >= since_s:
        return since_s
    # The history is told of whole hours.
    bound_s = (now_s - UNAPPENDED_FOR_S) // HOUR_S * HOUR_S
    if found >= bound_s:
        return found
    if GroupSample.objects.filter(cluster=cluster, at_s__gte=found, at_s__lt=bound_s).exists():
        SamplingState.objects.filter(cluster=cluster).update(lost_until_s=bound_s)
    return bound_s


def _thin(cluster: Cluster, raw_since_s: int) -> int:
    state = SamplingState.objects.filter(cluster=cluster).first()
    if state is None:
        return 0
    edge_s = raw_since_s // MINUTE_S * MINUTE_S
    due = GroupSample.objects.filter(cluster=cluster, at_s__gte=state.thinned_until_s, at_s__lt=edge_s)
    oldest_s = due.order_by("at_s", "pk").values_list("at_s", flat=True).first()
    if oldest_s is None:
        return 0
    count = 0
    begin_s = oldest_s // MINUTE_S * MINUTE_S
    end_s = min(edge_s, begin_s + MINUTES_PER_STEP * MINUTE_S)
    for minute_s in range(begin_s, end_s, MINUTE_S):
        count += _thin_minute(cluster, minute_s)
    SamplingState.objects.filter(pk=state.pk).update(thinned_until_s=end_s)
    return count


def _thin_minute(cluster: Cluster, minute_s: int) -> int:
    rows = GroupSample.objects.filter(cluster=cluster, at_s__gte=minute_s, at_s__lt=minute_s + MINUTE_S)
    last: dict[tuple[int, str], int] = {}
    surplus = []
    for pk, group_id, topic in rows.order_by("at_s", "pk").values_list("pk", "group_id", "topic_name"):
        if (earlier := last.get((group_id, topic))) is not None:
            surplus.append(earlier)
        last[group_id, topic] = pk
    return _delete(surplus)


def _remove(cluster: Cluster, before_s: int) -> int:
    old = GroupSample.objects.filter(cluster=cluster, at_s__lt=before_s).order_by("at_s", "pk")
    count = _delete(list(old.values_list("pk", flat=True)[:REMOVED_PER_STEP])) + gone_groups.remove(cluster, before_s)
    spans = SampledSpan.objects.filter(cluster=cluster, until_s__lt=before_s).order_by("since_s", "pk")
    oldest = list(spans.values_list("pk", flat=True)[:SPANS_PER_STEP])
    return count + SampledSpan.objects.filter(pk__in=oldest).delete()[0]


def _delete(pks: list[int]) -> int:
    """Deletes a bounded number of rows in each statement, each a transaction of its own."""
    return sum(GroupSample.objects.filter(pk__in=batch).delete()[0] for batch in chunks(pks))
