"""Indexes the messages of dead-letter queues: reads on from where each was left, and writes one row a message.

A queue is claimed before it is read, so that workers share the work; how far it is indexed moves in the transaction
that writes the rows, and only from where the reading began. So a worker that dies, or is overtaken, neither loses a
message nor writes one twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest, Least
from django.utils import timezone
from django.utils.translation import gettext_noop

from mqadmin.clusters.bulk import CHUNK
from mqadmin.clusters.claims import is_free
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.dead_message import DeadMessage, read_dead_message
from mqadmin.deadletters.failing import reasons
from mqadmin.deadletters.models import DeadLetter, DeadLetterQueue, Failure, FailureHour, KeptMessage, SearchText
from mqadmin.deadletters.search_texts import searched_body, words_text
from mqadmin.deadletters.signals import DeadLettersIndexed, dead_letters_indexed
from mqadmin.observing.gateway import Failures, GatewayError, QueuePlace, QueueReading, ask
from remoting.wire.names import group_of_dlq

# Read together; each may hold READ_BYTES_MAX until it is written.
QUEUES_AT_ONCE = 8
# After that a worker that did not write is taken for dead, and a queue that could not be read is tried again.
CLAIM_S = 60
# One step; what is left then is done by the next.
STEP_S = 20.0
# Of one group: hostile or careless messages could make every one a failure of its own. The others count as one.
FAILURES_MAX = 1000
OTHER_FAILURES = "other"


def index_step(cluster: Cluster, *, step_s: float = STEP_S) -> int:
    """Indexes what the cluster's dead-letter queues hold, for `step_s` at most; returns how many messages were new."""
    ends_s, count = time.monotonic() + step_s, 0
    while time.monotonic() < ends_s:
        queues = claim(cluster, timezone.now())
        if not queues:
            break
        count += _index(cluster, queues)
    return count


def claim(cluster: Cluster, now: datetime) -> list[DeadLetterQueue]:
    """Claims up to QUEUES_AT_ONCE queues that reach further than they are indexed."""
    behind = DeadLetterQueue.objects.filter(is_free(now), cluster=cluster, end_offset__gt=F("next_offset"))
    claimed = []
    for queue in behind.order_by(F("claimed_until").asc(nulls_first=True), "pk")[:QUEUES_AT_ONCE]:
        until = now + timedelta(seconds=CLAIM_S)
        if DeadLetterQueue.objects.filter(is_free(now), pk=queue.pk).update(claimed_until=until):
            claimed.append(queue)
    return claimed


def _index(cluster: Cluster, queues: Sequence[DeadLetterQueue]) -> int:
    masters = dict(cluster.brokers.filter(broker_id=0).values_list("name", "address"))
    places = {
        QueuePlace(masters[queue.broker_name], queue.topic_name, queue.queue_id, queue.next_offset): queue
        for queue in queues
        if queue.broker_name in masters
    }
    for queue in queues:
        if queue.broker_name not in masters:
            _note_problem(
                queue, gettext_noop("broker %(broker)s is not known any more") % {"broker": queue.broker_name}
            )
    failures = Failures()
    try:
        readings = ask(cluster.namesrv, lambda gateway: gateway.messages.read(places, failures))
    except GatewayError as error:
        readings, failures = {}, Failures(dict.fromkeys((place.address for place in places), str(error)))
    count = 0
    for place, queue in places.items():
        reading = readings.get(place)
        if reading is None:
            _note_problem(queue, failures.reasons[place.address])
        else:
            count += write(cluster, queue, reading, timezone.now())
    return count


def write(cluster: Cluster, queue: DeadLetterQueue, reading: QueueReading, now: datetime) -> int:
    """Writes what was read from `queue.next_offset` on; returns how many messages were new.

    Nothing is written where another worker has moved on meanwhile.
    """
    began = queue.next_offset
    # An end before that place: the topic was deleted and made anew.
    next_offset = 0 if reading.end_offset < began and not reading.messages else reading.next_offset
    if next_offset == began and not reading.refusal and reading.end_offset > began:
        _note_problem(queue, gettext_noop("the broker neither gives the next message nor says where to go on"))
        return 0
    with transaction.atomic():
        moved = DeadLetterQueue.objects.filter(pk=queue.pk, next_offset=began).update(
            next_offset=next_offset,
            end_offset=max(reading.end_offset, next_offset) if not reading.refusal else queue.end_offset,
            problem=reading.refusal,
            claimed_until=now + timedelta(seconds=CLAIM_S) if reading.refusal else None,
            indexed_at=now,
        )
        if not moved:
            return 0
        return _insert(cluster, queue, reading)


def _insert(cluster: Cluster, queue: DeadLetterQueue, reading: QueueReading) -> int:
    kept_bytes_max = settings.MQADMIN_DEAD_LETTER_BODY_KIB * 1024
    read = [read_dead_message(message, kept_bytes_max=kept_bytes_max) for message in reading.messages]
    group = group_of_dlq(queue.topic_name)
    new = _with_reasons(cluster, group, _without_known(cluster, queue, group, read))
    if not new:
        return 0
    failure_ids = failure_ids_of(cluster, group, new)
    rows = DeadLetter.objects.bulk_create(
        [_row(cluster, queue, group, failure_ids[dead.failure_identity], dead) for dead in new], batch_size=CHUNK
    )
    KeptMessage.objects.bulk_create(
        [
            KeptMessage(dead_letter=row, properties=dead.properties, body=dead.body)
            for row, dead in zip(rows, new, strict=True)
        ],
        batch_size=CHUNK,
    )
    SearchText.objects.bulk_create(
        [
            SearchText(dead_letter=row, words=words_text(row, dead.properties), body=searched_body(row, dead.body))
            for row, dead in zip(rows, new, strict=True)
        ],
        batch_size=CHUNK,
    )
    add_counts(failure_ids, new)
    event = DeadLettersIndexed(cluster, group, set(failure_ids.values()), len(new), _of_replays(rows, new))
    dead_letters_indexed.send(sender=DeadLetter, event=event)
    return len(new)


def _of_replays(rows: Sequence[DeadLetter], dead: Sequence[DeadMessage]) -> dict[tuple[str, int], int]:
    sent = zip(rows, dead, strict=True)
    found = {row.pk: one.replay for row, one in sent}
    return {replay: pk for pk, replay in found.items() if replay is not None}


def _without_known(
    cluster: Cluster, queue: DeadLetterQueue, group: str, read: Sequence[DeadMessage]
) -> list[DeadMessage]:
    """Leaves out those that have their row: a queue of a topic that was made anew is read from its beginning again."""
    if not read:
        return []
    known = set(
        DeadLetter.objects.filter(
            cluster=cluster,
            group_name=group,
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            queue_offset__range=(read[0].queue_offset, read[-1].queue_offset),
        ).values_list("queue_offset", "dead_at")
    )
    return [dead for dead in read if (dead.queue_offset, dead.dead_at) not in known]


def _with_reasons(cluster: Cluster, group: str, dead: Sequence[DeadMessage]) -> list[DeadMessage]:
    """Adds why they failed where they do not say so and the runtime has it: Apache's brokers keep no reason."""
    silent = [one.message_id for one in dead if not one.failure_class]
    known = reasons(cluster, group, silent) if silent else {}
    return [
        one if one.failure_class or (why := known.get(one.message_id)) is None else one.because_of(why) for one in dead
    ]


def failure_ids_of(cluster: Cluster, group: str, dead: Iterable[DeadMessage]) -> dict[str, int]:
    """Returns identity → primary key of the failures of these; makes those that are missing, FAILURES_MAX at most."""
    first = {one.failure_identity: one for one in reversed(list(dead))}
    of_group = Failure.objects.filter(cluster=cluster, group_name=group)
    found = dict(of_group.filter(identity__in=first).values_list("identity", "pk"))
    missing = [one for identity, one in first.items() if identity not in found]
    room = max(0, FAILURES_MAX - of_group.count()) if missing else 0
    made = {one.failure_identity: _failure(cluster, group, one) for one in missing[:room]}
    beyond = missing[room:]
    if beyond:
        other = beyond[0]
        made[OTHER_FAILURES] = Failure(
            cluster=cluster,
            group_name=group,
            identity=OTHER_FAILURES,
            shape=OTHER_FAILURES,
            first_dead_at=other.dead_at,
            last_dead_at=other.dead_at,
        )
    if made:
        Failure.objects.bulk_create(made.values(), ignore_conflicts=True, batch_size=CHUNK)
        found |= dict(of_group.filter(identity__in=made).values_list("identity", "pk"))
    for one in beyond:
        found[one.failure_identity] = found[OTHER_FAILURES]
    found.pop(OTHER_FAILURES, None)
    return found


def _failure(cluster: Cluster, group: str, dead: DeadMessage) -> Failure:
    return Failure(
        cluster=cluster,
        group_name=group,
        identity=dead.failure_identity,
        origin_topic=dead.origin_topic,
        tag=dead.tag,
        attempt_count=dead.attempt_count,
        failure_class=dead.failure_class,
        failure_text=dead.failure_text,
        shape=dead.shape,
        first_dead_at=dead.dead_at,
        last_dead_at=dead.dead_at,
    )


def _row(cluster: Cluster, queue: DeadLetterQueue, group: str, failure_id: int, dead: DeadMessage) -> DeadLetter:
    return DeadLetter(
        cluster=cluster,
        failure_id=failure_id,
        group_name=group,
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        queue_offset=dead.queue_offset,
        dead_at=dead.dead_at,
        message_id=dead.message_id,
        offset_message_id=dead.offset_message_id,
        origin_topic=dead.origin_topic,
        tag=dead.tag,
        keys=dead.keys,
        born_at=dead.born_at,
        born_host=dead.born_host,
        attempt_count=dead.attempt_count,
        failure_class=dead.failure_class,
        failure_text=dead.failure_text,
        failed_member=dead.failed_member,
        failed_listener=dead.failed_listener,
        body_bytes=dead.body_bytes,
    )


def add_counts(failure_ids: Mapping[str, int], dead: Iterable[DeadMessage]) -> None:
    """Adds to the counts of failures and hours, in one order for all workers, so that none wait for each other.

    An archived failure is shown again: what died of it now was not there when it was archived.
    """
    of_failure: dict[int, list[datetime]] = {}
    for one in dead:
        of_failure.setdefault(failure_ids[one.failure_identity], []).append(one.dead_at)
    for failure_id, moments in sorted(of_failure.items()):
        Failure.objects.filter(pk=failure_id).update(
            dead_count=F("dead_count") + len(moments),
            first_dead_at=Least("first_dead_at", min(moments)),
            last_dead_at=Greatest("last_dead_at", max(moments)),
            archived_at=None,
        )
    hours = Counter((failure_id, hour_of(at)) for failure_id, moments in of_failure.items() for at in moments)
    FailureHour.objects.bulk_create(
        [FailureHour(failure_id=failure_id, hour=hour) for failure_id, hour in sorted(hours)],
        ignore_conflicts=True,
        batch_size=CHUNK,
    )
    for (failure_id, hour), count in sorted(hours.items()):
        FailureHour.objects.filter(failure_id=failure_id, hour=hour).update(dead_count=F("dead_count") + count)


def hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _note_problem(queue: DeadLetterQueue, problem: str) -> None:
    """Says why the queue was not read; its claim keeps it from being tried again at once."""
    DeadLetterQueue.objects.filter(pk=queue.pk).update(problem=problem)
