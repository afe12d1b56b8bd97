"""Dead letters for pages and REST: failures, and the messages behind them, newest first, cut by a cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Count, F, QuerySet, Sum

from mqadmin.clusters.models import Cluster, Topic, TopicQueue
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.deadletters.masked_rows import with_readable_body
from mqadmin.deadletters.matching_rows import MatchingRows
from mqadmin.deadletters.models import DeadLetter, DeadLetterQueue, Failure, FailureHour
from mqadmin.deadletters.search_index import LookUp
from mqadmin.deadletters.search_texts import (
    as_word,
    attempts_word,
    failure_mark,
    failure_word,
    group_mark,
    user_property_word,
    wanted_words,
)
from mqadmin.people.roles import Role
from remoting.wire.bodies.topics import PERM_READ
from remoting.wire.names import dlq_topic

# The trend of a failure, an hour a bar.
TREND_HOURS = 24
# More than a person looks through; others are typed.
OWNERS_MAX = 200


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """What is looked for; "" and None: anything. `text`: all its words are in the fields; `body` is in the body.

    `body` has SEARCHED_CHARS_MIN characters at least, and is found only where `role` may see it. `user_property` is
    `name=value`, `attempts` the exact number. `since` and `until` are about when they died, the others about when they
    were sent first. Found is what is archived, or what is not: never both, since each has its own index.
    """

    group: str = ""
    failure_id: int | None = None
    text: str = ""
    body: str = ""
    role: Role | None = None
    since: datetime | None = None
    until: datetime | None = None
    user_property: str = ""
    attempts: int | None = None
    born_since: datetime | None = None
    born_until: datetime | None = None
    is_archived: bool = False

    @property
    def moment(self) -> str:
        """Returns the column that the list is ordered by: the one whose days are wanted, else that of the death."""
        is_by_birth = self.born_since or self.born_until
        return "born_at" if is_by_birth and not self.since and not self.until else "dead_at"


@dataclass(frozen=True, slots=True)
class QueueProblem:
    """Why a dead-letter queue cannot be read; `is_shut`: its topic may only be written, as old brokers make it."""

    topic: str
    broker: str
    text: str
    is_shut: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """What a cluster's index, or that of one group, holds, archived failures left out.

    `problems`: why queues cannot be read.
    """

    dead_count: int
    dead_last_day: int
    failure_count: int
    not_indexed_count: int
    problems: tuple[QueueProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class FailureFilter:
    """What is looked for; "": of any group, of any owner, first sent to any topic."""

    group: str = ""
    owner: str = ""
    topic: str = ""
    is_archived: bool = False


def failures(cluster: Cluster, wanted: FailureFilter) -> NewestRows[Failure]:
    """Returns the failures of a cluster, the one that a message died of last first."""
    rows = Failure.objects.filter(cluster=cluster, archived_at__isnull=not wanted.is_archived)
    if wanted.group:
        rows = rows.filter(group_name=wanted.group)
    if wanted.owner:
        rows = rows.filter(owner=wanted.owner)
    if wanted.topic:
        rows = rows.filter(origin_topic=wanted.topic)
    return NewestRows(rows, "last_dead_at")


def dead_of_topic(cluster: Cluster, topic: str) -> int:
    """Returns how many dead letters were first sent to the topic, archived failures left out."""
    found = failures(cluster, FailureFilter(topic=topic)).rows.aggregate(dead=Sum("dead_count"))
    return int(found["dead"] or 0)


def owners(cluster: Cluster) -> list[str]:
    """Returns the first OWNERS_MAX owners of failures, by name."""
    named = Failure.objects.filter(cluster=cluster).exclude(owner="").order_by("owner")
    return list(named.values_list("owner", flat=True).distinct()[:OWNERS_MAX])


def dead_letters(cluster: Cluster, wanted: DeadLetterFilter) -> NewestRows[DeadLetter] | MatchingRows:
    """Returns dead letters, the latest first; those that are looked up by words or bodies, the last indexed first."""
    rows = DeadLetter.objects.filter(cluster=cluster, archived_at__isnull=not wanted.is_archived)
    rows, shared = _of_failure_or_group(rows, wanted)
    if wanted.since is not None:
        rows = rows.filter(dead_at__gte=wanted.since)
    if wanted.until is not None:
        rows = rows.filter(dead_at__lt=wanted.until)
    if wanted.born_since is not None:
        rows = rows.filter(born_at__gte=wanted.born_since)
    if wanted.born_until is not None:
        rows = rows.filter(born_at__lt=wanted.born_until)
    indexed = NewestRows(rows, wanted.moment, shared)
    if not wanted.text and not wanted.body and not wanted.user_property and wanted.attempts is None:
        return indexed
    if wanted.body:
        rows = with_readable_body(rows, settings.MQADMIN_MASKED, wanted.role)
    if wanted.attempts is not None:
        rows = rows.filter(attempt_count=wanted.attempts)
    return MatchingRows(rows, indexed, _look_up(wanted))


def _of_failure_or_group(rows: QuerySet[DeadLetter], wanted: DeadLetterFilter) -> tuple[QuerySet[DeadLetter], str]:
    """Returns the rows of the failure and the group wanted, and which column the order is to begin with, "" for none.

    PostgreSQL takes those of a group for spread over all days, and reads the cluster's from the newest on: millions, if
    nothing has died in the group for long. Asked for a range of groups, in their order, it reads the index of groups.
    Where a first day is wanted, it is looked up in that index only of one group: of a range, all its rows are read.
    """
    one = {"group_name": wanted.group or None, "failure_id": wanted.failure_id}
    told = {column: value for column, value in one.items() if value is not None}
    if not told or connection.vendor != "postgresql" or wanted.since or wanted.born_since:
        return rows.filter(**told), ""
    shared, value = told.popitem()
    return rows.filter(**told, **{f"{shared}__gte": value, f"{shared}__lte": value}), shared


def _look_up(wanted: DeadLetterFilter) -> LookUp:
    """Returns the texts, and what makes the dead letters of a group or failure few, in the index itself."""
    words, marks = wanted_words(wanted.text), []
    # A text of signs alone has no word that could be found.
    if wanted.text and not words:
        return LookUp()
    if wanted.user_property:
        if not (word := user_property_word(wanted.user_property)):
            return LookUp()
        words.append(word)
    if wanted.attempts is not None:
        words.append(attempts_word(wanted.attempts))
    if wanted.group:
        words.append(as_word(wanted.group))
        marks.append(group_mark(wanted.group))
    if wanted.failure_id is not None:
        words.append(failure_word(wanted.failure_id))
        marks.append(failure_mark(wanted.failure_id))
    return LookUp(tuple(word for word in words if word), wanted.body, tuple(marks))


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
    counts = of_cluster.aggregate(dead=Sum("dead_count"), failures=Count("pk"))
    last_day = FailureHour.objects.filter(failure__in=of_cluster, hour__gt=now - timedelta(days=1))
    behind = queues.filter(end_offset__gt=F("next_offset"))
    waiting = behind.values_list("topic_name", "broker_name", "end_offset", "next_offset", "problem")
    return Totals(
        dead_count=counts["dead"] or 0,
        dead_last_day=last_day.aggregate(dead=Sum("dead_count"))["dead"] or 0,
        failure_count=counts["failures"],
        not_indexed_count=sum(end - reached for _, _, end, reached, _ in waiting),
        problems=_problems(cluster, [(topic, broker, text) for topic, broker, _, _, text in waiting if text]),
    )


def _problems(cluster: Cluster, found: Sequence[tuple[str, str, str]]) -> tuple[QueueProblem, ...]:
    perms = dict(Topic.objects.filter(cluster=cluster, name__in={one[0] for one in found}).values_list("name", "perm"))
    return tuple(
        QueueProblem(topic, broker, text, is_shut=(perm := perms.get(topic)) is not None and not perm & PERM_READ)
        for topic, broker, text in dict.fromkeys(found)
    )


def is_on_broker(dead: DeadLetter) -> bool | None:
    """Returns whether its broker still has it, by what was last observed of its queue; None: nothing was."""
    topic = dlq_topic(dead.group_name)
    queue = TopicQueue.objects.filter(
        topic__cluster=dead.cluster_id, topic__name=topic, broker_name=dead.broker_name, queue_id=dead.queue_id
    ).first()
    return None if queue is None else queue.min_offset <= dead.queue_offset < queue.max_offset


def trends(rows: Iterable[Failure], now: datetime) -> dict[int, list[int]]:
    """Returns by failure how many died in each of the last TREND_HOURS hours, the present one last."""
    present = now.replace(minute=0, second=0, microsecond=0)
    first = present - timedelta(hours=TREND_HOURS - 1)
    counts = {row.pk: [0] * TREND_HOURS for row in rows}
    hours = FailureHour.objects.filter(failure__in=counts, hour__gte=first, hour__lte=present)
    for failure_id, hour, count in hours.values_list("failure_id", "hour", "dead_count"):
        counts[failure_id][int((hour - first).total_seconds() // 3600)] = count
    return counts
