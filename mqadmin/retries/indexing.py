"""Reads on in the queues where brokers keep messages until their time, and writes a row for each that is a retry.

With delay levels these are the queues of SCHEDULE_TOPIC_XXXX, where timers do the delays that of `rmq_sys_wheel_timer`.
How far a queue is read moves in the transaction that writes the rows, and only from where the reading began: a worker
that dies, or is overtaken, neither loses an attempt nor writes one twice.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop

from mqadmin.clusters.bulk import CHUNK
from mqadmin.clusters.models import Broker, Cluster, Topic
from mqadmin.deadletters.dead_message import replay_of
from mqadmin.deadletters.failing import reasons
from mqadmin.observing.gateway import DelayReading, Failures, GatewayError, QueuePlace, ask
from mqadmin.retries.attempts import read_attempt
from mqadmin.retries.models import DelayQueue, DelayRead, FailedAttempt
from mqadmin.retries.signals import ReplayedAttempt, ReplayedFailed, replayed_failed
from remoting.wire.bodies.route import MASTER_ID
from remoting.wire.bodies.topics import TopicOffset
from remoting.wire.names import SCHEDULE_TOPIC, TIMER_TOPIC
from remoting.wire.stored_message import StoredMessage

# Read together; each may hold READ_BYTES_MAX until it is written.
QUEUES_AT_ONCE = 8
# One step, every 15 s; what is left then is done by the next.
STEP_S = 10.0
# Of one queue. Messages that senders delay wait there, too: further behind than that, the oldest are passed over, so
# that what waits now is found soon.
BEHIND_MAX = 100_000
# Where nothing comes, and nobody vouches for that, up to when a broker is read is written so often: what became of a
# replayed message is known that much later, and each further row would only say that time has passed.
READ_NOTED_EVERY = timedelta(seconds=60)
# A chain of retries with the usual delays takes five hours; brokers keep messages for three days.
KEPT_FOR = timedelta(days=7)
# Rows deleted in one statement, so that it never holds SQLite's only writer for long.
REMOVE_BATCH = 1000

# (broker, topic, queue id)
Queue = tuple[str, str, int]


def index_step(cluster: Cluster, brokers: Sequence[Broker] | None = None, *, step_s: float = STEP_S) -> int:
    """Reads what came to the delay queues of masters (None: all of the cluster), for `step_s` at most.

    Returns how many attempts were new. The brokers' rows say how far a follower had read their watches before.
    """
    ends_s, count = time.monotonic() + step_s, 0
    asked = list(cluster.brokers.filter(broker_id=int(MASTER_ID))) if brokers is None else brokers
    masters = {broker.name: broker.address for broker in asked}
    asked_at = timezone.now()
    ends, told = _ends(cluster, masters)
    behind = _behind(cluster, ends)
    with_news = {queue.broker_name for queue in behind}
    while behind and time.monotonic() < ends_s:
        count += _read(cluster, masters, behind[:QUEUES_AT_ONCE])
        # Round about, so that one that grows faster than it is read does not keep the others waiting.
        behind = behind[QUEUES_AT_ONCE:] + [
            queue for queue in behind[:QUEUES_AT_ONCE] if not queue.problem and queue.next_offset < _end(ends, queue)
        ]
    whole = told - _unread(cluster, ends)
    _note_read(cluster, [broker for broker in asked if broker.name in whole], with_news, asked_at)
    return count


def _unread(cluster: Cluster, ends: Mapping[Queue, TopicOffset]) -> set[str]:
    """Returns the brokers that have a queue which is not read up to its end."""
    return {
        row.broker_name
        for row in cluster.delay_queues.all()
        if row.problem
        or ((key := (row.broker_name, row.topic_name, row.queue_id)) in ends and row.next_offset < ends[key].max_offset)
    }


def _note_read(cluster: Cluster, read: Sequence[Broker], with_news: Collection[str], asked_at: datetime) -> None:
    """Notes of the brokers that are read up to their ends when they were asked, where that is news."""
    known = {row.broker_name: row for row in cluster.delay_reads.all()}
    for broker in sorted(read, key=lambda broker: broker.name):
        row, position = known.get(broker.name), {"boot": broker.boot, "revision": broker.revision}
        is_current = (
            row is not None
            and row.read_until is not None
            and (row.boot, row.revision) == (broker.boot, broker.revision)
            and asked_at - row.read_until < READ_NOTED_EVERY
        )
        if broker.name in with_news or not is_current:
            DelayRead.objects.update_or_create(
                cluster=cluster, broker_name=broker.name, defaults={"read_until": asked_at, **position}
            )


def _ends(cluster: Cluster, masters: Mapping[str, str]) -> tuple[dict[Queue, TopicOffset], set[str]]:
    """Asks each master how far its delay queues reach, and returns which brokers told it of all of theirs.

    What does not answer is left out, and asked again next time.
    """
    has_timers = Topic.objects.filter(cluster=cluster, name=TIMER_TOPIC).exists()
    topics = (SCHEDULE_TOPIC, TIMER_TOPIC) if has_timers else (SCHEDULE_TOPIC,)
    wanted = [(address, topic) for address in masters.values() for topic in topics]
    try:
        told = ask(cluster.namesrv, lambda gateway: gateway.topic_stats(wanted, Failures()))
    except GatewayError:
        return {}, set()
    names = {address: name for name, address in masters.items()}
    whole = {name for name, address in masters.items() if all((address, topic) in told for topic in topics)}
    return {
        (names[address], topic, queue.queue_id): offsets
        for (address, topic), stats in told.items()
        for queue, offsets in stats.items()
    }, whole


def _behind(cluster: Cluster, ends: Mapping[Queue, TopicOffset]) -> list[DelayQueue]:
    """Returns the queues that reach elsewhere than they are read; makes rows of those that are new."""
    known = {(row.broker_name, row.topic_name, row.queue_id): row for row in cluster.delay_queues.all()}
    made = [
        DelayQueue(
            cluster=cluster, broker_name=key[0], topic_name=key[1], queue_id=key[2], next_offset=offsets.min_offset
        )
        for key, offsets in ends.items()
        if key not in known and offsets.max_offset > 0
    ]
    if made:
        DelayQueue.objects.bulk_create(made, ignore_conflicts=True, batch_size=CHUNK)
        known = {(row.broker_name, row.topic_name, row.queue_id): row for row in cluster.delay_queues.all()}
    behind = [row for key, row in known.items() if key in ends and row.next_offset != ends[key].max_offset]
    for row in behind:
        _pass_over(row, _end(ends, row))
    return behind


def _pass_over(row: DelayQueue, end_offset: int) -> None:
    """Leaves out the oldest of too many."""
    first = end_offset - BEHIND_MAX
    if row.next_offset < first:
        began, skipped = row.next_offset, row.skipped_count + first - row.next_offset
        if DelayQueue.objects.filter(pk=row.pk, next_offset=began).update(next_offset=first, skipped_count=skipped):
            row.next_offset, row.skipped_count = first, skipped
            DelayRead.objects.update_or_create(
                cluster_id=row.cluster_id, broker_name=row.broker_name, defaults={"skipped_at": timezone.now()}
            )


def _end(ends: Mapping[Queue, TopicOffset], row: DelayQueue) -> int:
    return ends[row.broker_name, row.topic_name, row.queue_id].max_offset


def _read(cluster: Cluster, masters: Mapping[str, str], queues: Sequence[DelayQueue]) -> int:
    places = {
        QueuePlace(masters[queue.broker_name], queue.topic_name, queue.queue_id, queue.next_offset): queue
        for queue in queues
    }
    failures = Failures()
    try:
        readings = ask(cluster.namesrv, lambda gateway: gateway.retries.read(places, failures))
    except GatewayError as error:
        readings, failures = {}, Failures(dict.fromkeys((place.address for place in places), str(error)))
    count = 0
    for place, queue in places.items():
        reading = readings.get(place)
        if reading is None:
            _note_problem(queue, failures.reasons[place.address])
        else:
            count += write(cluster, queue, reading)
    return count


def write(cluster: Cluster, queue: DelayQueue, reading: DelayReading) -> int:
    """Writes what was read from `queue.next_offset` on; returns how many attempts it holds.

    Nothing is written where another worker has moved on meanwhile.
    """
    began, read = queue.next_offset, reading.queue
    # An end before that place: the store was made anew.
    next_offset = 0 if read.end_offset < began and not read.messages else read.next_offset
    if next_offset == began and not read.refusal and read.end_offset > began:
        _note_problem(queue, gettext_noop("the broker neither gives the next message nor says where to go on"))
        return 0
    found = [read_attempt(message, reading.due_ms.get(message.queue_offset)) for message in read.messages]
    rows = [row for row in found if row is not None]
    for row in rows:
        row.cluster, row.broker_name = cluster, queue.broker_name
    _add_reasons(cluster, rows)
    replayed = _of_replays(read.messages, found)
    with transaction.atomic():
        moved = DelayQueue.objects.filter(pk=queue.pk, next_offset=began).update(
            next_offset=next_offset, problem=read.refusal
        )
        if moved:
            FailedAttempt.objects.bulk_create(rows, ignore_conflicts=True, batch_size=CHUNK)
            if replayed:
                replayed_failed.send(sender=FailedAttempt, event=ReplayedFailed(cluster, replayed))
    queue.next_offset, queue.problem = next_offset, read.refusal
    return len(rows) if moved else 0


def _of_replays(
    messages: Sequence[StoredMessage], attempts: Sequence[FailedAttempt | None]
) -> dict[tuple[str, int], ReplayedAttempt]:
    """Returns by replay and entry the last of the attempts, of messages that a replay had sent."""
    found: dict[tuple[str, int], ReplayedAttempt] = {}
    for message, attempt in zip(messages, attempts, strict=True):
        replay = replay_of(message.properties)
        if replay is not None and attempt is not None and attempt.attempt_count > 0:
            came = ReplayedAttempt(attempt.attempt_count, attempt.due_at)
            if replay not in found or found[replay].attempt < came.attempt:
                found[replay] = came
    return found


def _add_reasons(cluster: Cluster, rows: Sequence[FailedAttempt]) -> None:
    """Adds why attempts failed where messages do not say so and the runtime has it: Apache's brokers keep no reason."""
    silent: dict[str, list[FailedAttempt]] = {}
    for row in rows:
        if not row.failure_class:
            silent.setdefault(row.group_name, []).append(row)
    for group, of_group in silent.items():
        known = reasons(cluster, group, (row.message_id for row in of_group))
        for row in of_group:
            why = known.get(row.message_id)
            # It keeps the latest of each message, which may be a later attempt's by now.
            if why is not None and why.attempt == row.attempt_count:
                row.failure_class, row.failure_text = why.exception, why.text
                row.failed_member, row.failed_listener = why.member, why.listener


def _note_problem(queue: DelayQueue, problem: str) -> None:
    """Says why the queue was not read; the next step tries again."""
    queue.problem = problem
    DelayQueue.objects.filter(pk=queue.pk).exclude(problem=problem).update(problem=problem)


def remove_old(now: datetime) -> int:
    """Removes attempts that failed more than KEPT_FOR ago; returns how many."""
    count = 0
    while True:
        old = list(
            FailedAttempt.objects.filter(failed_at__lt=now - KEPT_FOR).values_list("pk", flat=True)[:REMOVE_BATCH]
        )
        if not old:
            return count
        FailedAttempt.objects.filter(pk__in=old).delete()
        count += len(old)
