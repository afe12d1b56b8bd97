"""How often a caller may ask: counted per minute in the cache, which all web processes share.

A token has its own count, a session that of its account. A cache that cannot be reached counts nothing: reading goes
on, and what is written is checked by its action. Tokens that are not valid are counted by `mqadmin/tokens/guesses.py`.
"""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from mqadmin.tokens import guesses

# Ten a second: what a dashboard with many panels asks for. Each costs a few milliseconds of one core.
READS_PER_MIN = 600
# Previews and runs each ask brokers.
WRITES_PER_MIN = 120


class PerMinute(BaseThrottle):
    """READS_PER_MIN and WRITES_PER_MIN for each token or account."""

    def allow_request(self, request: Request, view: Any) -> bool:
        is_read = request.method in ("GET", "HEAD", "OPTIONS")
        who = f"token:{request.auth.pk}" if request.auth is not None else f"account:{request.user.pk}"
        limit = READS_PER_MIN if is_read else WRITES_PER_MIN
        return guesses.count(f"{'reads' if is_read else 'writes'}:{who}") <= limit

    def wait(self) -> float:
        return guesses.seconds_left()
