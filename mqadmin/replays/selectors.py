"""Replays for pages and REST: the jobs, newest first, and the ledger of one, cut by a cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group, QueueOffset
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.replays.becoming import Seen, became
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import ENDED, EntryState
from mqadmin.retries.models import DelayQueue, DelayRead

PAGE_SIZE = 50
# Replays of one dead letter that its page names.
OF_MESSAGE_MAX = 20
# Filters of the ledger beside the states of its entries: what failed again at least once, what is a dead letter again.
FAILED = "failed"
DEAD_AGAIN = "dead_again"
_NOT_NULL = {FAILED: "failed_attempt", DEAD_AGAIN: "dead_again_id"}


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """`older` is the cursor of the next page, "" on the last."""

    rows: tuple[ReplayEntry, ...]
    older: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """The entries of a replay in the order in which they are sent, with what became of each; a position is the key."""

    job: ReplayJob
    rows: QuerySet[ReplayEntry]

    def after(self, position: Sequence[Any] | None, size: int) -> list[ReplayEntry]:
        """Returns at most `size` entries behind the position, None for the first ones."""
        rows = self.rows if position is None else self.rows.filter(pk__lt=position[0])
        found = list(rows.order_by("-pk")[:size])
        judge(self.job, found, timezone.now())
        return found

    def position(self, row: ReplayEntry) -> list[Any]:
        """Returns the position of an entry, as plain JSON."""
        return [row.pk]

    def total_count(self) -> None:
        """Not counted: the job has the counts."""

    def page(self, before: str) -> LedgerPage:
        """Returns the entries behind a cursor; the first ones where it is "" or garbage."""
        is_place = before.isascii() and before.isdigit() and len(before) <= 18
        found = self.after([int(before)] if is_place else None, PAGE_SIZE + 1)
        rows = tuple(found[:PAGE_SIZE])
        return LedgerPage(rows, str(rows[-1].pk) if len(found) > PAGE_SIZE else "")


def replays(cluster: Cluster, group: str = "") -> NewestRows[ReplayJob]:
    """Returns the replays of a cluster or of one group."""
    rows = ReplayJob.objects.filter(cluster=cluster)
    return NewestRows(rows.filter(group_name=group) if group else rows, "created_at")


def replay(cluster: Cluster, number: int) -> ReplayJob:
    """Raises ReplayJob.DoesNotExist."""
    return ReplayJob.objects.get(cluster=cluster, pk=number)


def open_of_file(cluster: Cluster, file_id: int) -> ReplayJob | None:
    """Returns a replay of a file that has not ended, or is not done with what it had begun."""
    jobs = ReplayJob.objects.filter(cluster=cluster, selection__file=file_id)
    return jobs.exclude(state__in=ENDED, waiting_count=0, sending_count=0).first()


def files_in_use() -> set[int]:
    """Returns the files whose replays have not ended."""
    jobs = ReplayJob.objects.filter(selection__file__isnull=False).exclude(
        state__in=ENDED, waiting_count=0, sending_count=0
    )
    return {int(one["file"]) for one in jobs.values_list("selection", flat=True)}


def of_file(file_id: int) -> list[ReplayJob]:
    """Returns the replays of a file, the latest first."""
    return list(ReplayJob.objects.filter(selection__file=file_id).order_by("-pk")[:OF_MESSAGE_MAX])


def cluster_of(number: int) -> Cluster | None:
    """Returns the cluster that a replay is about; None where there is no such replay."""
    job = ReplayJob.objects.select_related("cluster").filter(pk=number).first()
    return job.cluster if job is not None else None


def ledger(job: ReplayJob, state: str = "") -> Ledger:
    """Returns the entries in a state, those that failed again (FAILED, DEAD_AGAIN), or all."""
    # From the job, so that an entry knows it.
    rows = job.entries.all()
    if state in _NOT_NULL:
        rows = rows.filter(**{f"{_NOT_NULL[state]}__isnull": False})
    elif state:
        rows = rows.filter(state=state)
    return Ledger(job, rows)


def of_dead_letter(dead_letter_id: int) -> list[ReplayEntry]:
    """Returns what replays did with a dead letter, the latest first."""
    rows = ReplayEntry.objects.filter(dead_letter=dead_letter_id).select_related("job")
    return list(rows.order_by("-pk")[:OF_MESSAGE_MAX])


def judge(job: ReplayJob, entries: Sequence[ReplayEntry], now: datetime) -> None:
    """Sets what became of each message that was sent."""
    behind = _passed(job, entries)
    failing = DelayQueue.objects.filter(cluster=job.cluster_id).exclude(problem="")
    unread = set(failing.values_list("broker_name", flat=True))
    reads = {one.broker_name: one for one in DelayRead.objects.filter(cluster=job.cluster_id)}
    for entry in entries:
        if entry.state == EntryState.SENT:
            read = reads.get(entry.broker_name)
            is_read = read is not None and entry.sent_at is not None and read.has_seen(entry.sent_at)
            seen = Seen(
                is_dead_again=entry.dead_again_id is not None,
                failed_attempt=entry.failed_attempt,
                retry_at=entry.retry_at,
                has_passed=behind.get(entry.pk),
                are_failures_seen=is_read and entry.broker_name not in unread,
            )
            entry.became = became(seen, now)
            entry.group_is_past = seen.has_passed


def attempts_max(job: ReplayJob) -> int | None:
    """Returns how often a message comes to a member, as the group is set up on brokers; None where that is not known.

    Clients since 3.4.9 may have a number of their own.
    """
    group = Group.objects.filter(cluster=job.cluster_id, name=job.group_name).first()
    return group.retry_times_max + 1 if group is not None and group.retry_times_max is not None else None


def _passed(job: ReplayJob, entries: Iterable[ReplayEntry]) -> dict[int, bool]:
    """Returns of sent entries whether the group's committed offset is behind the message, where that is known."""
    sent = [entry for entry in entries if entry.new_id and entry.queue_offset is not None]
    known = QueueOffset.objects.filter(
        group__cluster=job.cluster_id,
        group__name=job.group_name,
        topic_name__in={entry.topic for entry in sent},
        committed_offset__isnull=False,
    ).values_list("topic_name", "broker_name", "queue_id", "committed_offset")
    committed = {(topic, broker, queue): offset for topic, broker, queue, offset in known}
    found: dict[int, bool] = {}
    for entry in sent:
        offset = committed.get((entry.topic, entry.broker_name, entry.queue_id or 0))
        if offset is not None and entry.queue_offset is not None:
            found[entry.pk] = offset > entry.queue_offset
    return found
