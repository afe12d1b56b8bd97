"""Where the retries of a group stand: asked of brokers and members while somebody waits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from mqadmin.clusters.models import Cluster, Group, Member
from mqadmin.deadletters import failing
from mqadmin.deadletters.models import DeadLetter
from mqadmin.observing.gateway import Failures, GatewayError, RetriesOnBroker, ask
from mqadmin.retries.models import FailedAttempt
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.stored_message import StoredMessage

# Of a cluster, by name.
BROKERS_ASKED_MAX = 20
# They run the same code, but in the middle of a deploy.
MEMBERS_ASKED_MAX = 3
# A person waits for the page.
ASK_TIMEOUT_S = 6.0
# From there on the number of retries is Java's "without end", as groups that consume in order have it.
ENDLESS_FROM = 2**31 - 1


class Fate(StrEnum):
    """What became of a message after an attempt that failed."""

    WAITING = "waiting"
    LATE = "late"
    IN_QUEUE = "in_queue"
    WITH_MEMBER = "with_member"
    FAILED_AGAIN = "failed_again"
    DEAD = "dead"
    PAST = "past"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DueMessage:
    """A message of the retry topic that the group has not consumed. `is_with_member`: None where that is not told."""

    broker_name: str
    message: StoredMessage
    is_with_member: bool | None


@dataclass(frozen=True, slots=True)
class Standing:
    """`due_count` counts all that are due and not consumed, `due` has the first of each queue.

    `limits`: how often members have a message retried, each number once; empty where none says it. `failures`:
    address → why it did not answer.
    """

    due: tuple[DueMessage, ...] = ()
    due_count: int = 0
    limits: tuple[int, ...] = ()
    on_brokers: Mapping[str, RetriesOnBroker] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    unasked_count: int = 0


def standing_of(cluster: Cluster, group: str, members: Sequence[Member]) -> Standing:
    """Asks the masters and the first members of the group, within ASK_TIMEOUT_S each."""
    masters = dict(cluster.brokers.filter(broker_id=0).order_by("name").values_list("address", "name"))
    asked = list(masters)[:BROKERS_ASKED_MAX]
    failures = Failures()
    try:
        found = ask(
            cluster.namesrv,
            lambda gateway: gateway.retries.of_group(asked, group, failures, timeout_s=ASK_TIMEOUT_S),
        )
    except GatewayError as error:
        found, failures = {}, Failures({cluster.namesrv: str(error)})
    told = failing.members_told(cluster, group, members[:MEMBERS_ASKED_MAX]) if members else None
    limits = {
        one.status.reconsume_times_max
        for one in (told.members if told is not None else ())
        if one.status is not None and one.status.reconsume_times_max is not None
    }
    on_brokers = {masters[address]: one for address, one in found.items()}
    return Standing(
        due=tuple(_due(on_brokers)),
        due_count=sum(
            max(0, queue.end_offset - queue.committed_offset) for one in on_brokers.values() for queue in one.queues
        ),
        limits=tuple(sorted(limits)),
        on_brokers=on_brokers,
        failures=dict(failures.reasons),
        unasked_count=len(masters) - len(asked),
    )


def _due(on_brokers: Mapping[str, RetriesOnBroker]) -> list[DueMessage]:
    return [
        DueMessage(broker, message, None if queue.pulled_offset is None else message.queue_offset < queue.pulled_offset)
        for broker, one in sorted(on_brokers.items())
        for queue in one.queues
        for message in queue.messages
    ]


def limit_of(standing: Standing, group: Group) -> tuple[int | None, bool]:
    """Returns how many attempts a message has in all, and whether members said so; None: without end, or not known.

    Brokers go by what the member says with each message; the group's own setting counts for clients before 3.4.9.
    """
    if standing.limits:
        largest = standing.limits[-1]
        return (None if largest >= ENDLESS_FROM else largest + 1), True
    return (group.retry_times_max + 1 if group.retry_times_max is not None else None), False


def fates(rows: Collection[FailedAttempt], standing: Standing, now: datetime) -> dict[int, Fate]:
    """Returns what became of the messages of one group after these attempts, by primary key."""
    if not rows:
        return {}
    of_messages = {
        "cluster__in": {row.cluster_id for row in rows},
        "group_name__in": {row.group_name for row in rows},
        "message_id__in": {row.message_id for row in rows},
    }
    failed = FailedAttempt.objects.filter(**of_messages).values_list("message_id", "failed_at")
    died = DeadLetter.objects.filter(**of_messages).values_list("message_id", "dead_at")
    ends = [(message_id, at, Fate.FAILED_AGAIN) for message_id, at in failed]
    ends += [(message_id, at, Fate.DEAD) for message_id, at in died]
    due = {(one.message.message_id, one.message.reconsume_times): one for one in standing.due}
    found: dict[int, Fate] = {}
    for row in rows:
        # A replayed one has several chains of attempts: what came first after this one is its end.
        after = [(at, fate) for message_id, at, fate in ends if message_id == row.message_id and at > row.failed_at]
        found[row.pk] = (
            min(after)[1] if after else _standing_fate(row, standing, due.get((row.message_id, row.attempt_count)), now)
        )
    return found


def _standing_fate(row: FailedAttempt, standing: Standing, due: DueMessage | None, now: datetime) -> Fate:
    if due is not None:
        return Fate.WITH_MEMBER if due.is_with_member else Fate.IN_QUEUE
    on_broker = standing.on_brokers.get(row.broker_name)
    if row.due_at is not None and row.due_at > now:
        return Fate.WAITING
    if on_broker is None:
        return Fate.UNKNOWN
    if row.topic_name == SCHEDULE_TOPIC:
        # A level that has handed nothing over is not named.
        if row.queue_offset >= on_broker.delivered.get(row.queue_id + 1, 0):
            return Fate.LATE
    elif row.due_at is None:
        return Fate.UNKNOWN
    return Fate.PAST if all(queue.is_whole for queue in on_broker.queues) else Fate.UNKNOWN
