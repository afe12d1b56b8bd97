"""Failed attempts for pages and REST."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Min

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.retries.models import DelayQueue, FailedAttempt

# Of a group, the next ones: more than a person looks at.
WAITING_MAX = 50
# Of one message: RocketMQ's clients try 17 times where nobody says otherwise.
ATTEMPTS_MAX = 100
# Of one moment; they failed together.
FIRST_MAX = 20


@dataclass(frozen=True, slots=True)
class Waiting:
    """The next WAITING_MAX of `count` messages of a group that wait for their time."""

    rows: tuple[FailedAttempt, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What is not known of a cluster's retries: `skipped_count` messages were passed over; `problems`: why brokers do
    not let their queues be read, by broker."""

    skipped_count: int
    problems: dict[str, str]


def first_failed_at(failure: Failure) -> datetime:
    """Returns when the message that died first of a failure had failed for the first time, hours before it died.

    That is when the failure began. Where its attempts were not read, it is when the message died. What was replayed has
    attempts of its former death, too: they don't count.
    """
    first_dead_at = failure.first_dead_at
    first = list(
        DeadLetter.objects.filter(failure=failure, dead_at=first_dead_at).values_list("message_id", flat=True)[
            :FIRST_MAX
        ]
    )
    of_messages = {"cluster": failure.cluster_id, "group_name": failure.group_name, "message_id__in": first}
    died_before = DeadLetter.objects.filter(**of_messages, dead_at__lt=first_dead_at).aggregate(at=Max("dead_at"))["at"]
    failed = FailedAttempt.objects.filter(**of_messages, failed_at__lt=first_dead_at)
    if died_before is not None:
        failed = failed.filter(failed_at__gt=died_before)
    return failed.aggregate(at=Min("failed_at"))["at"] or first_dead_at


def attempts(cluster: Cluster, group: str, *, waiting_at: datetime | None = None) -> NewestRows[FailedAttempt]:
    """Returns failed attempts of a group, the latest first; with `waiting_at` those whose next one is still to come."""
    rows = FailedAttempt.objects.filter(cluster=cluster, group_name=group)
    return NewestRows(rows if waiting_at is None else rows.filter(due_at__gt=waiting_at), "failed_at")


def waiting(cluster: Cluster, group: str, now: datetime) -> Waiting:
    """Returns the messages of a group that wait for their time, the next one first."""
    rows = FailedAttempt.objects.filter(cluster=cluster, group_name=group, due_at__gt=now)
    return Waiting(tuple(rows.order_by("due_at", "pk")[:WAITING_MAX]), rows.count())


def attempts_of(dead: DeadLetter) -> list[FailedAttempt]:
    """Returns the attempts that led to a dead letter, as far as they were seen, the first one first.

    One that was replayed counts anew: those before its former death belong to that.
    """
    of_message = {"cluster": dead.cluster_id, "group_name": dead.group_name, "message_id": dead.message_id}
    former = DeadLetter.objects.filter(**of_message, dead_at__lt=dead.dead_at).order_by("-dead_at").first()
    rows = FailedAttempt.objects.filter(**of_message, failed_at__lte=dead.dead_at)
    if former is not None:
        rows = rows.filter(failed_at__gt=former.dead_at)
    return list(rows.order_by("failed_at", "pk")[:ATTEMPTS_MAX])


def reading(cluster: Cluster) -> Reading:
    """Returns what is not known of a cluster's retries, and why."""
    queues = DelayQueue.objects.filter(cluster=cluster)
    skipped = sum(queues.filter(skipped_count__gt=0).values_list("skipped_count", flat=True))
    return Reading(
        skipped, dict(queues.exclude(problem="").order_by("broker_name").values_list("broker_name", "problem"))
    )
