"""Dead letters for pages and REST: failures, and the messages behind them, newest first, cut by a cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db.models import F, Model, Q, QuerySet

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.newest_first import read_cursor, rows_behind, write_cursor
from mqadmin.deadletters.models import DeadLetter, DeadLetterQueue, Failure, FailureHour

PAGE_SIZE = 50
# The trend of a failure, an hour a bar.
TREND_HOURS = 24
# More than a person looks through; others are typed.
OWNERS_MAX = 200

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """What is looked for; "" and None: anything. `text` is in an id, a key, the topic, the tag, or the error.

    Found is what is archived, or what is not: never both, since each has its own index.
    """

    group: str = ""
    failure_id: int | None = None
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None
    is_archived: bool = False


@dataclass(frozen=True, slots=True)
class NewestRows(Generic[M]):
    """Rows by the moment in `column`, the newest first; a position is (moment, primary key)."""

    rows: QuerySet[M]
    column: str

    def after(self, position: Sequence[Any] | None, size: int) -> list[M]:
        """Returns at most `size` rows behind the position, None for the first ones."""
        rows = self.rows
        if position is not None:
            rows = rows_behind(rows, self.column, *position)
        return list(rows.order_by(f"-{self.column}", "-pk")[:size])

    def position(self, row: M) -> list[object]:
        """Returns the position of a row, as plain JSON."""
        return [getattr(row, self.column).isoformat(), row.pk]

    def total_count(self) -> None:
        """Not counted: there may be millions."""

    def page(self, before: str, size: int = PAGE_SIZE) -> Page[M]:
        """Returns the rows before a cursor; the first ones where it is "" or garbage."""
        found = self.after(read_cursor(before), size + 1)
        rows = tuple(found[:size])
        older = write_cursor(getattr(rows[-1], self.column), rows[-1].pk) if len(found) > size else ""
        return Page(rows, older)


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """`older` is the cursor of the next page, "" on the last."""

    rows: tuple[M, ...]
    older: str


@dataclass(frozen=True, slots=True)
class Totals:
    """What a cluster's index, or that of one group, holds, archived failures left out.

    `problems`: queue → why it cannot be read.
    """

    dead_count: int
    dead_last_day: int
    failure_count: int
    not_indexed_count: int
    problems: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailureFilter:
    """What is looked for; "": of any group, of any owner."""

    group: str = ""
    owner: str = ""
    is_archived: bool = False


def failures(cluster: Cluster, wanted: FailureFilter) -> NewestRows[Failure]:
    """Returns the failures of a cluster, the one that a message died of last first."""
    rows = Failure.objects.filter(cluster=cluster, archived_at__isnull=not wanted.is_archived)
    if wanted.group:
        rows = rows.filter(group_name=wanted.group)
    if wanted.owner:
        rows = rows.filter(owner=wanted.owner)
    return NewestRows(rows, "last_dead_at")


def owners(cluster: Cluster) -> list[str]:
    """Returns the first OWNERS_MAX owners of failures, by name."""
    named = Failure.objects.filter(cluster=cluster).exclude(owner="").order_by("owner")
    return list(named.values_list("owner", flat=True).distinct()[:OWNERS_MAX])


def dead_letters(cluster: Cluster, wanted: DeadLetterFilter) -> NewestRows[DeadLetter]:
    rows = DeadLetter.objects.filter(cluster=cluster, archived_at__isnull=not wanted.is_archived)
    if wanted.failure_id is not None:
        rows = rows.filter(failure_id=wanted.failure_id)
    if wanted.group:
        rows = rows.filter(group_name=wanted.group)
    if wanted.since is not None:
        rows = rows.filter(dead_at__gte=wanted.since)
    if wanted.until is not None:
        rows = rows.filter(dead_at__lt=wanted.until)
    if wanted.text:
        rows = rows.filter(_mentions(wanted.text))
    return NewestRows(rows, "dead_at")


def _mentions(text: str) -> Q:
    return (
        Q(message_id=text)
        | Q(offset_message_id=text)
        | Q(keys__contains=f" {text} ")
        | Q(origin_topic__icontains=text)
        | Q(tag__icontains=text)
        | Q(failure_class__icontains=text)
        | Q(failure_text__icontains=text)
    )


def dead_letter(cluster: Cluster, dead_letter_id: int) -> DeadLetter:
    """Returns it with its failure and what is kept of it. Raises DeadLetter.DoesNotExist."""
    return DeadLetter.objects.select_related("failure", "kept").get(cluster=cluster, pk=dead_letter_id)


def failure(cluster: Cluster, failure_id: int) -> Failure:
    """Raises Failure.DoesNotExist."""
    return Failure.objects.get(cluster=cluster, pk=failure_id)


def totals(cluster: Cluster, now: datetime, group: str = "") -> Totals:
    of_cluster = Failure.objects.filter(cluster=cluster, archived_at=None)
    queues = DeadLetterQueue.objects.filter(cluster=cluster)
    if group:
        of_cluster = of_cluster.filter(group_name=group)
        queues = queues.filter(topic_name=f"%DLQ%{group}")
    counts = list(of_cluster.values_list("dead_count", flat=True))
    last_day = FailureHour.objects.filter(failure__in=of_cluster, hour__gt=now - timedelta(days=1))
    behind = queues.filter(end_offset__gt=F("next_offset"))
    waiting = behind.values_list("topic_name", "broker_name", "end_offset", "next_offset", "problem")
    return Totals(
        dead_count=sum(counts),
        dead_last_day=sum(last_day.values_list("dead_count", flat=True)),
        failure_count=len(counts),
        not_indexed_count=sum(end - reached for _, _, end, reached, _ in waiting),
        problems={f"{topic} on {broker}": problem for topic, broker, _, _, problem in waiting if problem},
    )


def trends(rows: Iterable[Failure], now: datetime) -> dict[int, list[int]]:
    """Returns by failure how many died in each of the last TREND_HOURS hours, the present one last."""
    present = now.replace(minute=0, second=0, microsecond=0)
    first = present - timedelta(hours=TREND_HOURS - 1)
    counts = {row.pk: [0] * TREND_HOURS for row in rows}
    hours = FailureHour.objects.filter(failure__in=counts, hour__gte=first, hour__lte=present)
    for failure_id, hour, count in hours.values_list("failure_id", "hour", "dead_count"):
        counts[failure_id][int((hour - first).total_seconds() // 3600)] = count
    return counts
