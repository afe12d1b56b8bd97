"""Counts attempts with tokens that are not valid, by address: REST and the websocket of events ask here first.

Counted per minute in the cache, which all web processes share. A cache that cannot be reached counts nothing.
"""

from __future__ import annotations

import logging
import time

from django.core.cache import cache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

# Guesses at tokens from one address; a valid token from there waits, too.
FAILURES_PER_MIN = 30
WINDOW_S = 60


def wait_after_failures_s(address: str) -> float | None:
    """Returns how long an address waits that guessed too often; None where it need not."""
    try:
        found: int = cache.get(_key(f"failures:{address}"), 0)
    except (OSError, RedisError):
        return None
    return seconds_left() if found >= FAILURES_PER_MIN else None


def count_failure(address: str) -> None:
    """Counts an attempt with a token that is not valid."""
    count(f"failures:{address}")


def count(what: str) -> int:
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


def seconds_left() -> float:
    """Returns how long this minute still lasts."""
    return WINDOW_S - time.time() % WINDOW_S


def _key(what: str) -> str:
    return f"rate:{what}:{int(time.time()) // WINDOW_S}"
