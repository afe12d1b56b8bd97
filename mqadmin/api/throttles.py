"""How often a caller may ask: counted per minute in the cache, which all web processes share.

A token has its own count, a session that of its account. A cache that cannot be reached counts nothing: reading goes
on, and what is written is checked by its action.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

logger = logging.getLogger(__name__)

# Ten a second: what a dashboard with many panels asks for. Each costs a few milliseconds of one core.
READS_PER_MIN = 600
# Previews and runs each ask brokers.
WRITES_PER_MIN = 120
# Guesses at tokens from one address; a valid token from there waits, too.
FAILURES_PER_MIN = 30
WINDOW_S = 60


class PerMinute(BaseThrottle):
    """READS_PER_MIN and WRITES_PER_MIN for each token or account."""

    def allow_request(self, request: Request, view: Any) -> bool:
        is_read = request.method in ("GET", "HEAD", "OPTIONS")
        who = f"token:{request.auth.pk}" if request.auth is not None else f"account:{request.user.pk}"
        limit = READS_PER_MIN if is_read else WRITES_PER_MIN
        return _count(f"{'reads' if is_read else 'writes'}:{who}") <= limit

    def wait(self) -> float:
        return _seconds_left()


def wait_after_failures_s(address: str) -> float | None:
    """Returns how long an address waits that guessed too often; None where it need not."""
    try:
        count: int = cache.get(_key(f"failures:{address}"), 0)
    except (OSError, RedisError):
        return None
    return _seconds_left() if count >= FAILURES_PER_MIN else None


def count_failure(address: str) -> None:
    """Counts an attempt with a token that is not valid."""
    _count(f"failures:{address}")


def _count(what: str) -> int:
    """Counts one more in this minute; returns how many, 0 where nobody can count."""
    key = _key(what)
    try:
        cache.add(key, 0, 2 * WINDOW_S)
        return cache.incr(key)
    except ValueError:  # evicted in between
        return 1
    except (OSError, RedisError) as error:
        logger.warning("the cache cannot be reached, so requests are not counted: %s", error)
        return 0


def _key(what: str) -> str:
    return f"rate:{what}:{int(time.time()) // WINDOW_S}"


def _seconds_left() -> float:
    return WINDOW_S - time.time() % WINDOW_S
