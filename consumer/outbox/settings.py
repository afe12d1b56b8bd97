"""The setting CONSUMER_OUTBOX.

    CONSUMER_OUTBOX = {"databases": ["default", "orders"], "keep_sent_s": 86400}

databases       databases whose outboxes are delivered (["default"])
pending_max     messages that may wait in one database; beyond it a transaction that writes one fails (1,000,000)
give_up_after_s a message that could not be sent for so long is given up (3 days)
keep_sent_s     how long a sent message's row stays (1 hour)
keep_failed_s   how long one that was given up stays (30 days)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS

NAME = "CONSUMER_OUTBOX"
DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxSettings:
    databases: Sequence[str] = (DEFAULT_DB_ALIAS,)
    pending_max: int = 1_000_000
    give_up_after_s: float = 3 * DAY_S
    keep_sent_s: float = 3600
    keep_failed_s: float = 30 * DAY_S


def outbox_settings() -> OutboxSettings:
    """Returns what the setting says. Raises ImproperlyConfigured for an unknown word, database or negative number."""
    given: dict[str, Any] = dict(getattr(settings, NAME, None) or {})
    known = [field.name for field in fields(OutboxSettings)]
    unknown = sorted(given.keys() - set(known))
    if unknown:
        raise ImproperlyConfigured(f"{NAME} has no {unknown[0]!r}; there are: {', '.join(known)}")
    wanted = OutboxSettings(**given)
    missing = [alias for alias in wanted.databases if alias not in settings.DATABASES]
    if missing:
        raise ImproperlyConfigured(f"{NAME}: database {missing[0]!r} is not in DATABASES")
    for name in known[1:]:
        value = getattr(wanted, name)
        if not isinstance(value, int | float) or value < 0:
            raise ImproperlyConfigured(f"{NAME}: {name} is {value!r}; a number of 0 or more is needed")
    return wanted
