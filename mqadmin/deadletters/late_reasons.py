"""Joins dead letters with reasons that came after them.

On Apache's clusters the runtime's table alone says why a message failed (`failing.py`), and members write it once a
second: one that died of its first attempt may be indexed before. It moves to the failure that it then belongs to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from consumer.conf import cluster_behind
from consumer.models import MessageFailure
from mqadmin.clusters.bulk import CHUNK
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.dead_message import UNREADABLE, DeadMessage
from mqadmin.deadletters.failing import reasons
from mqadmin.deadletters.indexing import OTHER_FAILURES, add_counts, failure_ids_of, hour_of
from mqadmin.deadletters.models import DeadLetter, Failure, FailureHour, SearchText
from mqadmin.deadletters.search_texts import searched_body, words_text
from mqadmin.deadletters.shapes import shape_of
from mqadmin.deadletters.signals import (
    DeadLettersIndexed,
    LateReason,
    ReasonsCame,
    dead_letters_indexed,
    reasons_came,
)

# A reason comes a second after its failure; the index may wait for a worker. Clocks of brokers differ from ours.
LATE = timedelta(minutes=10)
# Of one cluster, in each look: dead letters of members elsewhere stay without a reason, and are looked at again.
LOOKED_AT_MAX = 5000
_TOLD = ("failure_class", "failure_text", "failed_member", "failed_listener")


def join_late_reasons(now: datetime) -> int:
    """Looks at what died lately in the clusters that the settings name; returns how many got their reason."""
    return sum(_join(cluster, now) for cluster in Cluster.objects.all() if cluster_behind(cluster.namesrv) is not None)


def _join(cluster: Cluster, now: datetime) -> int:
    silent: dict[str, list[DeadLetter]] = {}
    latest = DeadLetter.objects.filter(cluster=cluster, archived_at=None, dead_at__gte=now - LATE).order_by(
        "-dead_at", "-id"
    )
    for row in latest.only("group_name", "message_id", "failure_class")[:LOOKED_AT_MAX]:
        if not row.failure_class:
            silent.setdefault(row.group_name, []).append(row)
    count = 0
    for group, rows in silent.items():
        for start in range(0, len(rows), CHUNK):
            count += _join_group(cluster, group, rows[start : start + CHUNK])
    return count


def _join_group(cluster: Cluster, group: str, rows: Sequence[DeadLetter]) -> int:
    known = reasons(cluster, group, [row.message_id for row in rows])
    told = {row.pk: known[row.message_id] for row in rows if row.message_id in known}
    if not told:
        return 0
    with transaction.atomic():
        # Each row once, whoever else looks; written first, so that SQLite lets nobody between.
        mine = [pk for pk, why in sorted(told.items()) if _tell(pk, why)]
        if mine:
            _move(cluster, group, mine)
    return len(mine)


def _tell(pk: int, why: MessageFailure) -> bool:
    row = DeadLetter.objects.filter(pk=pk, failure_class="")
    values = (why.exception, why.text, why.member, why.listener)
    return bool(row.update(**dict(zip(_TOLD, values, strict=True))))


def _move(cluster: Cluster, group: str, ids: Sequence[int]) -> None:
    """Puts dead letters, which have their reason by now, where the index would have put them."""
    rows = list(DeadLetter.objects.filter(pk__in=ids).select_related("failure", "kept").order_by("pk"))
    dead = [_as_read(row) for row in rows]
    left = [(row.failure_id, row.dead_at) for row in rows]
    before = [row.failure.identity for row in rows]
    renamed = _rename(rows, dead)
    failure_ids = failure_ids_of(cluster, group, dead)
    for row, one in zip(rows, dead, strict=True):
        row.failure_id = failure_ids[one.failure_identity]
    DeadLetter.objects.bulk_update(rows, ["failure"], batch_size=CHUNK)
    add_counts(failure_ids, dead)
    # Before failures go: who hears of it locks its own rows before failures, too.
    reasons_came.send(sender=DeadLetter, event=ReasonsCame(cluster, group, _late(rows, before), renamed))
    _subtract_counts(left)
    # Deleted and made: triggers keep the index of these rows.
    SearchText.objects.filter(pk__in=ids).delete()
    SearchText.objects.bulk_create(
        [
            SearchText(dead_letter=row, words=words_text(row, one.properties), body=searched_body(row, one.body))
            for row, one in zip(rows, dead, strict=True)
        ],
        batch_size=CHUNK,
    )
    changed = {*failure_ids.values(), *(failure_id for failure_id, _ in left)}
    dead_letters_indexed.send(sender=DeadLetter, event=DeadLettersIndexed(cluster, group, changed, 0))


def _late(rows: Sequence[DeadLetter], before: Sequence[str]) -> list[LateReason]:
    """`before`: the identities of the failures that they were of."""
    now = dict(Failure.objects.filter(pk__in={row.failure_id for row in rows}).values_list("pk", "identity"))
    return [
        LateReason(row.pk, was, now[row.failure_id], row.failure_class, row.failure_text)
        for row, was in zip(rows, before, strict=True)
    ]


def _rename(rows: Sequence[DeadLetter], dead: Sequence[DeadMessage]) -> dict[str, str]:
    """Keeps a failure whose dead letters all turn out to be of one new failure: with its number, owner and alarms.

    Returns the new identities of those by the ones that they had.
    """
    renamed: dict[str, str] = {}
    moving: dict[int, list[DeadMessage]] = {}
    for row, one in zip(rows, dead, strict=True):
        moving.setdefault(row.failure_id, []).append(one)
    for failure_id, ones in moving.items():
        identities = {one.failure_identity for one in ones}
        failure = Failure.objects.get(pk=failure_id)
        is_whole = failure.dead_count == len(ones) and len(identities) == 1 and failure.identity != OTHER_FAILURES
        same = Failure.objects.filter(
            cluster=failure.cluster_id, group_name=failure.group_name, identity__in=identities
        )
        if is_whole and not same.exists():
            Failure.objects.filter(pk=failure_id).update(
                identity=ones[0].failure_identity,
                failure_class=ones[0].failure_class,
                failure_text=ones[0].failure_text,
            )
            renamed[failure.identity] = ones[0].failure_identity
    return renamed


def _as_read(row: DeadLetter) -> DeadMessage:
    """Returns what the index would have read of the message, had it said why it failed."""
    body = bytes(row.kept.body) if row.kept.body is not None else None
    shape = row.failure.shape
    if row.failure.identity == OTHER_FAILURES:
        shape = UNREADABLE if body is None else shape_of(body)
    return DeadMessage(
        queue_offset=row.queue_offset,
        dead_at=row.dead_at,
        message_id=row.message_id,
        offset_message_id=row.offset_message_id,
        origin_topic=row.origin_topic,
        tag=row.tag,
        keys=row.keys,
        born_at=row.born_at,
        born_host=row.born_host,
        attempt_count=row.attempt_count,
        failure_class=row.failure_class,
        failure_text=row.failure_text,
        failed_member=row.failed_member,
        failed_listener=row.failed_listener,
        shape=shape,
        body_bytes=row.body_bytes,
        body=body,
        properties=row.kept.properties,
    )


def _subtract_counts(left: Sequence[tuple[int, datetime]]) -> None:
    """Takes moved dead letters from the counts; a failure of which nothing is left goes, unless people wrote on it."""
    for (failure_id, hour), count in sorted(Counter((one, hour_of(at)) for one, at in left).items()):
        FailureHour.objects.filter(failure_id=failure_id, hour=hour).update(dead_count=F("dead_count") - count)
    FailureHour.objects.filter(failure_id__in={one for one, _ in left}, dead_count=0).delete()
    for failure_id, count in sorted(Counter(one for one, _ in left).items()):
        failure = Failure.objects.filter(pk=failure_id)
        failure.update(dead_count=F("dead_count") - count)
        last = DeadLetter.objects.filter(failure_id=failure_id).order_by("-dead_at").values_list("dead_at", flat=True)
        if (last_dead_at := last.first()) is not None:
            failure.update(last_dead_at=last_dead_at)
        else:
            failure.filter(dead_count=0, owner="", note="").delete()
