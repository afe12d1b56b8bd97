"""Consumes each message once (`@listener(…, once=True)`): its unique key is recorded in the listener's own transaction.

RocketMQ delivers at least once: after a lost acknowledgement, a rebalance or a producer's own retry a message comes
again. Key and changes of the listener are committed together or not at all, so that a message whose key is there has
been consumed, and is skipped. Two instances with one message at the same time: the database lets one of them wait for
the other's end.

Once means the database that the record is in: mails and requests to others are sent again when the commit fails. Keys
are kept for CONSUMER_ONCE_DAYS; what comes again later, or after operators reset the offset to before that, is consumed
again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS, IntegrityError, transaction

from consumer.engine.message import Message
from consumer.listener import GroupSpec
from consumer.middleware.chain import Call
from consumer.models import ConsumedMessage

logger = logging.getLogger(__name__)

# Deleted in one statement; a run deletes until nothing old is left.
PORTION_ROWS = 1000


def once_per_message(call: Call, group_key: str, using: str) -> Call:
    """Wraps a plain listener, with the database `using` for its record and its transaction."""

    def consume(message: Message) -> Any:
        with transaction.atomic(using=using):
            if not _record(group_key, message, using):
                logger.info("group %s: %s was consumed before", group_key, message)
                return None
            return call(message)

    return consume


def databases(specs: Iterable[GroupSpec]) -> set[str]:
    """Returns the databases in which listeners record what they consumed."""
    given = {options["once"] for spec in specs for options in spec.listener_options.values()}
    return {database_of(value) for value in given if value is not False}


def database_of(once: bool | str) -> str:
    return once if isinstance(once, str) else DEFAULT_DB_ALIAS


def forget(before: datetime, using: str) -> int:
    """Deletes the keys that were recorded before that moment; returns their number."""
    old = ConsumedMessage.objects.using(using).filter(consumed_at__lt=before).order_by("consumed_at")
    deleted = 0
    while ids := list(old.values_list("id", flat=True)[:PORTION_ROWS]):
        deleted += ConsumedMessage.objects.using(using).filter(id__in=ids).delete()[0]
    return deleted


def _record(group_key: str, message: Message, using: str) -> bool:
    """Returns False when the key is there already. Raises ValueError for a message without one."""
    if not message.id:
        raise ValueError(f"{message} has no id to be consumed once by")
    try:
        with transaction.atomic(using=using):
            ConsumedMessage.objects.using(using).create(group=group_key, key=message.id)
    except IntegrityError:
        return False
    return True
