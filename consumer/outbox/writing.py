"""Writes messages to the outbox, in the transaction that the caller is in.

What a broker would not take is refused here, so that it never waits in vain. After the commit Celery is told, at most
four times a second by one process; a delivery that it begins looks once more after a longer time (`delivery.LINGER_S`),
and beat begins one every few seconds whatever happens.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Unpack

from django.core.exceptions import ImproperlyConfigured
from django.db import router, transaction
from django.utils import timezone

from consumer.conf import namesrv
from consumer.outbox.models import ORDER_KEY_CHARS_MAX, OutboxMessage, OutboxState
from consumer.outbox.settings import outbox_settings
from remoting.client.instance import local_address
from remoting.client.outgoing import Message, MessageOptions, check_send_topic, prepare_message
from remoting.complaints import ComplaintLog
from remoting.wire.errors import MessageError
from remoting.wire.message_id import UniqueKeyFactory

logger = logging.getLogger(__name__)

WAKE_INTERVAL_S = 0.25
# How long one process believes its last count of what waits.
COUNT_AGE_S = 5.0


class OutboxFull(Exception):
    """So many messages wait in the outbox that no further one is taken: see that they can be sent."""


class OutboxWriter:
    """One per process. `wake` begins a delivery; it may fail, and is then tried again with a later message."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._keys = UniqueKeyFactory(local_address())
        self._complaints = ComplaintLog(logger)
        self._lock = threading.Lock()
        self._woken_s = float("-inf")
        self._counted_s: dict[str, float] = {}

    def write(
        self,
        topic: str,
        body: bytes,
        *,
        cluster: str,
        order_key: str | None,
        using: str | None,
        **options: Unpack[MessageOptions],
    ) -> str:
        """Returns the message's id, its unique key when it is sent.

        Raises MessageError for what RocketMQ would not take, ImproperlyConfigured for a cluster or database that the
        settings do not name, OutboxFull.
        """
        namesrv(cluster)
        check_send_topic(topic)
        if order_key is not None and len(order_key) > ORDER_KEY_CHARS_MAX:
            raise MessageError(f"the order key has {len(order_key)} characters; {ORDER_KEY_CHARS_MAX} are allowed")
        message_id = self._keys.next()
        prepare_message(topic, Message(body, **options), message_id)
        database = using or router.db_for_write(OutboxMessage)
        self._check_database(database)
        OutboxMessage.objects.using(database).create(
            cluster=cluster,
            topic=topic,
            order_key=order_key or "",
            body=body,
            options=_stored(options),
            message_id=message_id,
        )
        transaction.on_commit(self._committed, using=database, robust=True)
        return message_id

    def _check_database(self, database: str) -> None:
        wanted = outbox_settings()
        if database not in wanted.databases:
            raise ImproperlyConfigured(
                f"the outbox of database {database!r} is not delivered: name it in CONSUMER_OUTBOX['databases']"
            )
        if time.monotonic() - self._counted_s.get(database, float("-inf")) < COUNT_AGE_S:
            return
        pending = OutboxMessage.objects.using(database).filter(state=OutboxState.PENDING)
        if pending[: wanted.pending_max + 1].count() > wanted.pending_max:
            raise OutboxFull(
                f"more than {wanted.pending_max} messages wait in the outbox of database {database!r}:"
                " see with `manage.py outbox` why they are not sent"
            )
        self._counted_s[database] = time.monotonic()

    def _committed(self) -> None:
        with self._lock:
            if time.monotonic() - self._woken_s < WAKE_INTERVAL_S:
                return
            self._woken_s = time.monotonic()
        try:
            self._wake()
        except Exception as error:  # whatever Celery's transport raises: the row is safe, and beat comes anyway
            self._complaints.warn("celery", "wake", "the outbox waits for beat, Celery was not told: %s", error)


def _stored(options: MessageOptions) -> dict[str, Any]:
    """Returns options as JSON holds them; seconds count from now on, not from when the row is sent."""
    stored: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    keys = stored.pop("keys", ())
    if keys:
        stored["keys"] = keys if isinstance(keys, str) else " ".join(keys)
    delay_s = stored.pop("delay_s", None)
    moment = timezone.now() + timedelta(seconds=delay_s) if delay_s is not None else stored.pop("deliver_at", None)
    if moment is not None:
        stored["deliver_at_ms"] = round(moment.timestamp() * 1000)
    if "properties" in stored:
        stored["properties"] = dict(stored["properties"])
    return stored
