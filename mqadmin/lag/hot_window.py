"""Reads the hot window: samples in the order of time, and the gaps between them.

A sample is the word of its queues until the next one of the same group and topic, as far as no `Gap` lies between: it
says from when to when nothing was sampled, or not everything, and why. One without queues says that the group reads the
topic no longer. After a gap, and in the first cycle of every
hour, all groups have a sample. Rows come in bounded chunks, so a window of millions needs the memory of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from heapq import merge
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from django.db.models import Q, QuerySet

from mqadmin.clusters.models import VERDICT_RANKS, Cluster, Group, Verdict
from mqadmin.lag import gone_groups, packing, sampling
from mqadmin.lag.gone_groups import GroupGone
from mqadmin.lag.lateness import LATE_AFTER_S
from mqadmin.lag.models import GroupSample, SampledSpan, SpanState
from mqadmin.lag.packing import QueueSample

# Rows in one statement: some MB unpacked.
ROWS_PER_READ = 2_000
LATE = "late"
Row = TypeVar("Row", bound=tuple[Any, ...])
_VERDICTS = {rank: verdict for verdict, rank in VERDICT_RANKS.items()}


class TopicSample(NamedTuple):
    """The queues of one topic of one group at one moment. `age_s`: how old the oldest of it was then.

    The group's verdict then, and how many members were online (None: not known). Of the topic of dead letters the
    queues have no committed offset. No queues: the group did not read the topic any more.
    """

    at_s: int
    group_id: int
    group: str
    topic: str
    verdict: Verdict
    member_count: int | None
    age_s: int | None
    queues: tuple[QueueSample, ...]


class Gap(NamedTuple):
    """`state`: "late" (nothing was sampled), "failed" (nothing could be), "partial" (`brokers` did not answer).

    Of these the queues stand in samples as they were before.
    """

    at_s: int
    until_s: int
    state: str
    note: str
    brokers: tuple[str, ...] = ()


class BrokersBack(NamedTuple):
    """The first cycle after a partial gap: what the queues of all brokers were is known again, unless a gap follows."""

    at_s: int


def samples(
    cluster: Cluster, since: datetime, until: datetime
) -> Iterator[TopicSample | Gap | GroupGone | BrokersBack]:
    """Yields what was sampled of all groups with since <= moment < until, oldest first, and the gaps in it.

    Of groups that are gone what the history has not, and when they went.
    """
    since_s, until_s = _seconds(since, until)
    present = _in_chunks(GroupSample.objects.filter(cluster=cluster), since_s, until_s)
    gone = map(_unpacked, gone_groups.rows(cluster, since_s, until_s))
    parts: list[Iterable[TopicSample | GroupGone | BrokersBack]] = [
        _back(cluster, since_s, until_s),
        present,
        gone,
        gone_groups.ends(cluster, since_s, until_s),
    ]
    return _with_gaps(merge(*parts, key=itemgetter(0)), gaps(cluster, since, until))


def oldest_s(cluster: Cluster) -> int | None:
    """Returns the moment of the first sample; None: there is none."""
    first_s = GroupSample.objects.filter(cluster=cluster).order_by("at_s").values_list("at_s", flat=True).first()
    return min((one for one in (first_s, gone_groups.oldest_s(cluster)) if one is not None), default=None)


def group_samples(group: Group, since: datetime, until: datetime) -> Iterator[TopicSample | Gap]:
    """Yields the same of one group; what held when the window begins comes first, at its own moment."""
    since_s, until_s = _seconds(since, until)
    of_group = GroupSample.objects.filter(group=group)
    # The first cycle of every hour has each topic, but for those that are gone by then.
    earlier = of_group.filter(at_s__lt=since_s, at_s__gte=since_s - sampling.WHOLE_EVERY_S - LATE_AFTER_S)
    last = {sample.topic: sample for sample in map(_unpacked, _values(earlier))}
    rows = _in_chunks(of_group, since_s, until_s)
    return _with_gaps(merge(sorted(last.values()), rows, key=itemgetter(0)), gaps(group.cluster, since, until))


def gaps(cluster: Cluster, since: datetime, until: datetime) -> list[Gap]:
    """Returns the gaps that touch the window, oldest first."""
    since_s, until_s = _seconds(since, until)
    found, last_s = [], None
    for span in _spans(cluster, since_s, until_s):
        if last_s is not None and span.since_s - last_s > LATE_AFTER_S:
            found.append(Gap(last_s, span.since_s, LATE, ""))
        if span.state != SpanState.COMPLETE:
            found.append(Gap(span.since_s, span.until_s, span.state, span.note, tuple(span.brokers)))
        last_s = span.until_s
    if last_s is not None and until_s - last_s > LATE_AFTER_S:
        found.append(Gap(last_s, until_s, LATE, ""))
    return [gap for gap in found if gap.until_s >= since_s and gap.at_s < until_s]


def _back(cluster: Cluster, since_s: int, until_s: int) -> Iterator[BrokersBack]:
    was_partial = False
    for span in _spans(cluster, since_s, until_s):
        if was_partial and span.since_s >= since_s:
            yield BrokersBack(span.since_s)
        was_partial = span.state == SpanState.PARTIAL


def _spans(cluster: Cluster, since_s: int, until_s: int) -> Iterable[SampledSpan]:
    """Returns the spans that touch the window, and the one before: a gap may begin with its end."""
    before = SampledSpan.objects.filter(cluster=cluster, since_s__lt=since_s).order_by("-since_s", "-pk")[:2]
    within = SampledSpan.objects.filter(cluster=cluster, since_s__gte=since_s, since_s__lt=until_s)
    return [*reversed(before), *within.order_by("since_s", "pk")]


def _in_chunks(rows: QuerySet[GroupSample], since_s: int, until_s: int) -> Iterator[TopicSample]:
    """Yields the rows by the index of their moment, each statement where the one before ended."""
    at_s, pk = since_s, 0
    while True:
        after = Q(at_s__gt=at_s) | Q(at_s=at_s, pk__gt=pk)
        chunk = list(_values(rows.filter(after, at_s__gte=at_s, at_s__lt=until_s))[:ROWS_PER_READ])
        yield from map(_unpacked, chunk)
        if len(chunk) < ROWS_PER_READ:
            return
        at_s, pk = chunk[-1][:2]


def _values(rows: QuerySet[GroupSample]) -> QuerySet[GroupSample, tuple[int, int, int, str, str, bytes | memoryview]]:
    return rows.order_by("at_s", "pk").values_list("at_s", "pk", "group_id", "group__name", "topic_name", "packed")


def _unpacked(row: tuple[int, int, int, str, str, bytes | memoryview]) -> TopicSample:
    at_s, _, group_id, group, topic, packed = row
    rank, member_count, age_s, queues = packing.unpack(packed)
    return TopicSample(at_s, group_id, group, topic, _VERDICTS[rank], member_count, age_s, queues)


def _with_gaps(rows: Iterable[Row], found: Iterable[Gap]) -> Iterator[Row | Gap]:
    """Puts a gap after the samples of its first moment: from then on they may not hold any more."""
    return merge(rows, found, key=itemgetter(0))


def _seconds(since: datetime, until: datetime) -> tuple[int, int]:
    return int(since.timestamp()), int(until.timestamp())
