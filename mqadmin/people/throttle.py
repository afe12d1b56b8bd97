"""Slows down guessing of passwords: so many failed log-ins per address and per name, counted in the cache.

The counting is django-allauth's (`ACCOUNT_RATE_LIMITS`). While the cache is away nobody is kept out: a console that
cannot be entered when Redis is down would be worse than one that can be guessed at for a while.
"""

from __future__ import annotations

import logging

from allauth.core import ratelimit
from django.http import HttpRequest
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

ACTION = "login_failed"


def may_try(request: HttpRequest, name: str) -> bool:
    """Counts an attempt; returns False beyond the limit."""
    try:
        return bool(ratelimit.consume(request, action=ACTION, key=name.lower()))
    except RedisError as error:
        logger.warning("failed log-ins are not counted while the cache is away: %s", error)
        return True


def forget(request: HttpRequest, name: str) -> None:
    """Forgets the failed attempts under a name, after one that succeeded."""
    try:
        ratelimit.clear(request, action=ACTION, key=name.lower())
    except RedisError as error:
        logger.warning("failed log-ins are not counted while the cache is away: %s", error)
