"""Samples every group's queues into the hot window, a cycle each half minute: what changed, and how far it is true.

Nothing is asked of brokers: a cycle reads the rows that following and polling keep. Only groups that may have changed
since the last cycle are read (their revision, and the end of their dead letters), and written are topics of which
something is otherwise; the first cycle of every hour and the first after a gap write all, so that each hour of the
window says everything. A topic that a group reads no longer is written once more, without queues.

A cycle is claimed by one worker. What it saw of the cluster stands in a `SampledSpan`: complete, partial (some brokers
did not answer), or failed (the cluster does not answer, or nothing follows it). A cycle that comes late begins another
span, so what is between two spans was not sampled. Nothing is made up for a gap.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q

from mqadmin.clusters.bulk import chunks, insert
from mqadmin.clusters.claims import is_free
from mqadmin.clusters.models import POLLED_KINDS, VERDICT_RANKS, Cluster, ClusterState, TopicKind, Verdict
from mqadmin.lag import broadcasting, packing, sampled_queues, sums, written
from mqadmin.lag.lateness import LATE_AFTER_S
from mqadmin.lag.models import SPAN_NOTE_CHARS_MAX, GroupSample, SampledSpan, SamplingState, SpanState
from mqadmin.lag.packing import QueueSample, Sampled
from mqadmin.lag.sums import QueueEnd
from mqadmin.lag.written import WrittenGroup
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.route import MASTER_ID
from remoting.wire.names import dlq_topic

logger = logging.getLogger(__name__)

CYCLE_S = 30
# Beat may be a little early.
_CLAIM_AFTER = timedelta(seconds=CYCLE_S - 5)
# A worker that was killed in the midst of a cycle keeps others from it for so long.
_CLAIMED_FOR = timedelta(seconds=4 * CYCLE_S)
# Rows that nobody has vouched for since: three cycles of polling, and more than a watch waits.
FRESH_FOR = timedelta(seconds=50)
# The first cycle in so many seconds writes all groups.
WHOLE_EVERY_S = 3600
_NOTHING_WRITTEN = WrittenGroup(0)
# The digest of what has no room in a row.
_NOT_PACKED = 0
_NOT_KNOWN = -1
# Of a topic of dead letters that is there, and nobody said yet where and how many: without queues it would be gone.
_QUEUES_NOT_KNOWN = (QueueSample("", 0, None, None),)


class Quality(NamedTuple):
    """What a cycle can say of a cluster. `silent`: brokers whose rows are as they were when they last answered."""

    state: SpanState
    note: str = ""
    silent: tuple[str, ...] = ()


class _SampleRow(NamedTuple):
    """The row of a `GroupSample`; without models, as there are ten thousand in a cycle."""

    cluster: int
    group: int
    topic_name: str
    at_s: int
    packed: bytes


class _GroupRow(NamedTuple):
    pk: int
    name: str
    revision: int
    verdict: str
    member_count: int | None
    offsets_seen_at: datetime | None


def sample_cluster(cluster: Cluster, now: datetime) -> int | None:
    """Takes the cycle that is due; returns how many rows it wrote, None when none is due or another worker has it."""
    state = _claim(cluster, now)
    if state is None:
        return None
    began_s = time.monotonic()
    try:
        seen = quality(cluster, now)
        row_count = 0 if seen.state == SpanState.FAILED else _sample(cluster, state, now)
    except Exception as error:
        seen, row_count = Quality(SpanState.FAILED, f"sampling failed: {error!r}"), 0
        logger.exception("cluster %s was not sampled", cluster.name)
    if seen.state == SpanState.FAILED:
        SamplingState.objects.filter(pk=state.pk).update(written=b"")
    note_cycle(cluster, seen, int(now.timestamp()), seconds=time.monotonic() - began_s, row_count=row_count)
    SamplingState.objects.filter(pk=state.pk).update(claimed_until=None, sampled_at=now)
    return row_count


def quality(cluster: Cluster, now: datetime) -> Quality:
    """Judges how far the rows of the cluster are true now; it was read `with_freshness`."""
    if cluster.state == ClusterState.NEW:
        return Quality(SpanState.FAILED, "the cluster was not asked yet")
    if cluster.state == ClusterState.UNREACHABLE:
        return Quality(SpanState.FAILED, f"the cluster does not answer: {cluster.last_error}")
    # A polled cluster of which a broker is silent was asked, and not synced.
    is_asked = cluster.state == ClusterState.PARTIAL and cluster.kind in POLLED_KINDS
    until = cluster.asked_until(now) if is_asked else cluster.observing_until
    if until is None or now - until > FRESH_FOR:
        return Quality(SpanState.FAILED, "nothing follows the cluster")
    if cluster.brokers_away:
        silent = tuple(sorted(cluster.brokers_away))
        return Quality(SpanState.PARTIAL, f"no answer from {', '.join(silent)}", silent)
    if cluster.state == ClusterState.PARTIAL:
        return Quality(SpanState.PARTIAL, cluster.last_error or "some brokers do not answer", _failing(cluster))
    return Quality(SpanState.COMPLETE)


def _failing(cluster: Cluster) -> tuple[str, ...]:
    masters = cluster.brokers.filter(broker_id=int(MASTER_ID)).exclude(last_error="")
    return tuple(masters.order_by("name").values_list("name", flat=True))


def note_cycle(cluster: Cluster, seen: Quality, at_s: int, *, seconds: float = 0, row_count: int = 0) -> None:
    """Writes the cycle into the present span, or begins the next one."""
    note = seen.note[:SPAN_NOTE_CHARS_MAX]
    last = cluster.sampled_spans.order_by("-since_s", "-pk").first()
    is_alike = last is not None and (last.state, last.note, tuple(last.brokers)) == (seen.state, note, seen.silent)
    if last is None or not is_alike or at_s - last.until_s > LATE_AFTER_S:
        last = SampledSpan(
            cluster=cluster, state=seen.state, note=note, brokers=list(seen.silent), since_s=at_s, cycle_count=0
        )
    last.until_s, last.cycle_count = at_s, last.cycle_count + 1
    last.seconds, last.row_count = seconds, row_count
    last.save()


def _claim(cluster: Cluster, now: datetime) -> SamplingState | None:
    SamplingState.objects.get_or_create(cluster=cluster)
    is_due = Q(sampled_at=None) | Q(sampled_at__lte=now - _CLAIM_AFTER)
    free = SamplingState.objects.filter(is_free(now), is_due, cluster=cluster)
    if not free.update(claimed_until=now + _CLAIMED_FOR):
        return None
    return SamplingState.objects.get(cluster=cluster)


def _sample(cluster: Cluster, state: SamplingState, now: datetime) -> int:
    """Writes what changed since the last cycle; returns how many rows that were."""
    is_first = state.sampled_at is None or _is_late(state.sampled_at, now)
    last = {} if is_first else written.unpack(state.written)
    known = {} if state.sampled_at is None or _hour(state.sampled_at) != _hour(now) else last
    dead_ends = _dead_letter_ends(cluster)
    now_written: dict[int, WrittenGroup] = {}
    changed: list[_GroupRow] = []
    rows = cluster.groups.filter(is_system=False).values_list(*_GroupRow._fields)
    for group in (_GroupRow(*row) for row in rows):
        before = known.get(group.pk)
        if before is not None and before.key == _key(group, dead_ends):
            now_written[group.pk] = before
        else:
            changed.append(group)
    row_count = 0
    for batch in chunks(changed):
        samples, of_batch = _changed_rows(cluster, batch, known, dead_ends, now)
        samples += _ended_rows(cluster, batch, last, of_batch, now)
        with transaction.atomic():
            insert(GroupSample, samples, fields=_SampleRow._fields)
        now_written |= of_batch
        row_count += len(samples)
    if (packed := written.pack(now_written)) != state.written:
        SamplingState.objects.filter(pk=state.pk).update(written=packed)
    return row_count


def _changed_rows(
    cluster: Cluster,
    groups: Sequence[_GroupRow],
    known: Mapping[int, WrittenGroup],
    dead_ends: Mapping[str, int],
    now: datetime,
) -> tuple[list[_SampleRow], dict[int, WrittenGroup]]:
    """Returns what of these groups is to be written, and what will then have been."""
    rows = broadcasting.read(cluster.pk, [group.pk for group in groups])
    dead = _dead_letters(cluster, [name for group in groups if (name := dlq_topic(group.name)) in dead_ends])
    samples: list[_SampleRow] = []
    of_batch: dict[int, WrittenGroup] = {}
    for group in groups:
        topics = sampled_queues.by_topic(rows.get(group.pk, sums.GroupRows()))
        if (of_dead := dlq_topic(group.name)) in dead_ends:
            topics[of_dead] = dead.get(of_dead, _QUEUES_NOT_KNOWN)
        digests: dict[int, int] = {}
        before = known.get(group.pk, _NOTHING_WRITTEN).digests
        rank, age_s = VERDICT_RANKS[Verdict(group.verdict)], _age_s(cluster, group, now)
        for topic, of_topic in topics.items():
            layout = _laid_out(group, topic, Sampled(rank, group.member_count, age_s, of_topic))
            name_digest = written.digest(topic.encode())
            digests[name_digest] = _NOT_PACKED if layout is None else written.digest(packing.without_age(layout))
            if layout is not None and before.get(name_digest) != digests[name_digest]:
                samples.append(_row(cluster, group, topic, layout, now))
        of_batch[group.pk] = WrittenGroup(_key(group, dead_ends), digests)
    return samples, of_batch


def _ended_rows(
    cluster: Cluster,
    groups: Sequence[_GroupRow],
    last: Mapping[int, WrittenGroup],
    now_written: Mapping[int, WrittenGroup],
    now: datetime,
) -> Iterator[_SampleRow]:
    """Yields, of topics that were in the last cycle and are not any more, that the group has no queue of them."""
    gone = {
        group.pk: left
        for group in groups
        if (left := last.get(group.pk, _NOTHING_WRITTEN).digests.keys() - now_written[group.pk].digests.keys())
    }
    if not gone:
        return
    # Only digests of names are kept; each topic was written at the first cycle of its hour, or later.
    since_s = int(now.timestamp()) - WHOLE_EVERY_S - LATE_AFTER_S
    lately = GroupSample.objects.filter(group__in=gone, at_s__gte=since_s).order_by("group", "topic_name")
    names = lately.values_list("group_id", "topic_name").distinct()
    of_pk = {group.pk: group for group in groups}
    for pk, topic in names:
        if written.digest(topic.encode()) in gone[pk]:
            group = of_pk[pk]
            nothing = Sampled(
                VERDICT_RANKS[Verdict(group.verdict)], group.member_count, _age_s(cluster, group, now), ()
            )
            yield _row(cluster, group, topic, packing.laid_out(nothing), now)


def _laid_out(group: _GroupRow, topic: str, content: Sampled) -> bytes | None:
    try:
        return packing.laid_out(content)
    except ValueError as error:
        logger.warning("group %s is not sampled at topic %s: %s", group.name, topic, error)
        return None


def _row(cluster: Cluster, group: _GroupRow, topic: str, layout: bytes, now: datetime) -> _SampleRow:
    return _SampleRow(cluster.pk, group.pk, topic, int(now.timestamp()), packing.compressed(layout))


def _dead_letter_ends(cluster: Cluster) -> dict[str, int]:
    """Returns how far each topic of dead letters reaches: nobody reads these, so no group changes by them.

    One of which that is not known yet is sampled all the same: its first letters are not new ones.
    """
    topics = cluster.topics.filter(kind=TopicKind.DEAD_LETTER).values_list("name", "max_total")
    return {name: _NOT_KNOWN if max_total is None else max_total for name, max_total in topics}


def _dead_letters(cluster: Cluster, topics: Sequence[str]) -> dict[str, tuple[QueueSample, ...]]:
    ends: defaultdict[str, dict[MessageQueue, QueueEnd]] = defaultdict(dict)
    for queue, end in sums.ends_of(cluster.pk, topics).items():
        ends[queue.topic][queue] = end
    return {topic: sampled_queues.of_dead_letters(of_topic) for topic, of_topic in ends.items()}


def _key(group: _GroupRow, dead_ends: Mapping[str, int]) -> int:
    return written.digest(f"{group.revision} {dead_ends.get(dlq_topic(group.name), 0)}".encode())


def _age_s(cluster: Cluster, group: _GroupRow, now: datetime) -> int | None:
    until = cluster.true_until(group.offsets_seen_at)
    return None if until is None else max(0, int((now - until).total_seconds()))


def _is_late(last: datetime, now: datetime) -> bool:
    return (now - last).total_seconds() > LATE_AFTER_S


def _hour(moment: datetime) -> int:
    return int(moment.timestamp()) // WHOLE_EVERY_S
