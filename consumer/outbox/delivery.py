"""Sends what waits in the outbox: at least once, always with the same unique key, in order per topic and order key.

A portion is the oldest messages whose time has come, but none behind an older one of its key that waits for a retry.
Keys are sent side by side, the messages of one key one after the other, each when the one before is stored. A message
that a broker is sure never to take is given up at once; any other is tried again after 1, 2, 4 … 300 s, until it is too
old. The next of its key goes on then.

A process that dies between a send and its row's update sends again: the same unique key, by which consumers know it.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from consumer.background_producer import BackgroundProducers
from consumer.outbox import leases
from consumer.outbox.models import ERROR_CHARS_MAX, OutboxMessage, OutboxState
from consumer.outbox.settings import OutboxSettings, outbox_settings
from remoting.client.errors import BrokerRefused, ClientError, NotConnected, RequestTimedOut, SendFailed
from remoting.client.producer import Producer
from remoting.client.retrying_sender import RETRIABLE_CODES
from remoting.wire.errors import WireError

logger = logging.getLogger(__name__)

PORTION_MAX = 200
# No send of a portion begins later: with its time-out that is less than a lease.
PORTION_S_MAX = 15.0
# Keys that are sent side by side.
LANES_MAX = 32
RETRY_PAUSE_S_MAX = 300.0
# One run of the task; what is left is the next one's.
RUN_S_MAX = 20.0
# After the last message a run looks once more, since processes do not tell Celery of every commit.
LINGER_S = 0.5
DELETED_MAX = 5000


@dataclass(slots=True)
class PortionOutcome:
    """Ids of rows by what became of them; a row in none of them was not tried."""

    sent: list[int] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    later: dict[int, str] = field(default_factory=dict)
    is_unreachable: bool = False


def deliver(producers: BackgroundProducers, *, sleep: Callable[[float], None] = time.sleep) -> int:
    """Sends what waits in all databases, RUN_S_MAX at most for each cluster; returns how many messages were sent."""
    wanted = outbox_settings()
    sent = 0
    for using in wanted.databases:
        for cluster in _clusters(using):
            sent += _deliver_cluster(producers, using, cluster, wanted, sleep)
        _prune(using, wanted)
    return sent


def _clusters(using: str) -> list[str]:
    pending = OutboxMessage.objects.using(using).filter(state=OutboxState.PENDING, next_attempt_at__lte=timezone.now())
    return sorted(set(pending.values_list("cluster", flat=True).distinct()))


def _deliver_cluster(
    producers: BackgroundProducers,
    using: str,
    cluster: str,
    wanted: OutboxSettings,
    sleep: Callable[[float], None],
) -> int:
    holder, began_s, sent = uuid.uuid4(), time.monotonic(), 0
    has_lingered = False
    try:
        while time.monotonic() - began_s < RUN_S_MAX and leases.hold(using, cluster, holder, timezone.now()):
            rows = portion(using, cluster, timezone.now())
            if not rows and has_lingered:
                break
            has_lingered = not rows
            if has_lingered:
                sleep(LINGER_S)
                continue
            outcome = producers.of(cluster).run(partial(send_portion, rows=rows))
            record(using, outcome, wanted)
            sent += len(outcome.sent)
            if outcome.is_unreachable:
                break
    finally:
        leases.release(using, cluster, holder)
    return sent


def portion(using: str, cluster: str, now: datetime) -> list[OutboxMessage]:
    """Returns what is to be sent now, oldest first, PORTION_MAX at most."""
    pending = OutboxMessage.objects.using(using).filter(state=OutboxState.PENDING, cluster=cluster)
    waiting_before = pending.filter(
        topic=OuterRef("topic"), order_key=OuterRef("order_key"), id__lt=OuterRef("id"), next_attempt_at__gt=now
    )
    due = pending.filter(next_attempt_at__lte=now).filter(Q(order_key="") | ~Exists(waiting_before))
    return list(due.order_by("id")[:PORTION_MAX])


async def send_portion(producer: Producer, rows: Sequence[OutboxMessage]) -> PortionOutcome:
    """Sends rows, each lane in order. Stops trying when no broker is reached: the others would fail alike."""
    outcome = PortionOutcome()
    turns = asyncio.Semaphore(LANES_MAX)
    deadline_s = asyncio.get_running_loop().time() + PORTION_S_MAX
    async with asyncio.TaskGroup() as lanes:
        for lane in _lanes(rows):
            lanes.create_task(_send_lane(producer, lane, turns, deadline_s, outcome))
    return outcome


def _lanes(rows: Iterable[OutboxMessage]) -> list[list[OutboxMessage]]:
    """Returns the messages of each key together; each message without a key by itself."""
    lanes: dict[object, list[OutboxMessage]] = {}
    for row in rows:
        lanes.setdefault((row.topic, row.order_key) if row.order_key else row.pk, []).append(row)
    return list(lanes.values())


async def _send_lane(
    producer: Producer,
    lane: Sequence[OutboxMessage],
    turns: asyncio.Semaphore,
    deadline_s: float,
    outcome: PortionOutcome,
) -> None:
    async with turns:
        for row in lane:
            if outcome.is_unreachable or asyncio.get_running_loop().time() >= deadline_s:
                return
            try:
                await producer.send(
                    row.topic,
                    bytes(row.body),
                    order_key=row.order_key or None,
                    message_id=row.message_id,
                    **_options(row),
                )
            except (ClientError, WireError) as error:
                if _is_final(error):
                    outcome.failed[row.pk] = str(error)
                    continue
                outcome.later[row.pk] = str(error)
                outcome.is_unreachable |= _is_unreachable(error)
                return
            except Exception as error:  # a mistake of ours must not keep all others waiting
                logger.exception("outbox message %s cannot be sent", row.message_id)
                outcome.later[row.pk] = repr(error)
                return
            outcome.sent.append(row.pk)


def _options(row: OutboxMessage) -> dict[str, Any]:
    options = dict(row.options)
    deliver_at_ms = options.pop("deliver_at_ms", None)
    if deliver_at_ms is not None:
        options["deliver_at"] = datetime.fromtimestamp(deliver_at_ms / 1000, UTC)
    return options


def _is_final(error: Exception) -> bool:
    """Returns whether the message is sure never to be taken: what it is, not where it goes, was refused."""
    return isinstance(error, WireError) or (isinstance(error, BrokerRefused) and error.code not in RETRIABLE_CODES)


def _is_unreachable(error: Exception) -> bool:
    tries = error.attempts if isinstance(error, SendFailed) else (error,)
    return bool(tries) and all(isinstance(each, NotConnected | RequestTimedOut | ConnectionError) for each in tries)


def record(using: str, outcome: PortionOutcome, wanted: OutboxSettings) -> None:
    """Writes what became of a portion into its rows."""
    rows, now = OutboxMessage.objects.using(using), timezone.now()
    pending = rows.filter(state=OutboxState.PENDING)
    if outcome.sent:
        sent = {"state": OutboxState.SENT, "ended_at": now, "attempts": F("attempts") + 1, "last_error": ""}
        pending.filter(pk__in=outcome.sent).update(**sent)
    for pk, error in outcome.failed.items():
        _give_up(rows, pk, error, now)
    for row in pending.filter(pk__in=list(outcome.later)):
        error = outcome.later[row.pk]
        if (now - row.created_at).total_seconds() >= wanted.give_up_after_s:
            _give_up(rows, row.pk, f"given up after {wanted.give_up_after_s:g} s: {error}", now)
            continue
        pause_s = min(2.0 ** min(row.attempts, 20), RETRY_PAUSE_S_MAX)
        pending.filter(pk=row.pk).update(
            attempts=F("attempts") + 1,
            next_attempt_at=now + timedelta(seconds=pause_s),
            last_error=error[:ERROR_CHARS_MAX],
        )


def _give_up(rows: Any, pk: int, error: str, now: datetime) -> None:
    logger.error("outbox message %s is given up: %s", pk, error)
    rows.filter(pk=pk, state=OutboxState.PENDING).update(
        state=OutboxState.FAILED, ended_at=now, attempts=F("attempts") + 1, last_error=error[:ERROR_CHARS_MAX]
    )


def _prune(using: str, wanted: OutboxSettings) -> None:
    """Deletes old rows, DELETED_MAX at most."""
    now, rows = timezone.now(), OutboxMessage.objects.using(using)
    for state, keep_s in ((OutboxState.SENT, wanted.keep_sent_s), (OutboxState.FAILED, wanted.keep_failed_s)):
        old = rows.filter(state=state, ended_at__lt=now - timedelta(seconds=keep_s))
        ids = list(old.order_by("ended_at").values_list("pk", flat=True)[:DELETED_MAX])
        if ids:
            rows.filter(pk__in=ids).delete()


def retry(using: str, message_ids: Sequence[str] | None = None) -> int:
    """Lets messages that were given up be sent again, all or those named; returns how many."""
    failed = OutboxMessage.objects.using(using).filter(state=OutboxState.FAILED)
    if message_ids is not None:
        failed = failed.filter(message_id__in=message_ids)
    now = timezone.now()
    return failed.update(state=OutboxState.PENDING, ended_at=None, next_attempt_at=now, created_at=now, attempts=0)
