"""A mail server that is busy now and then, so that retries can be seen."""

from __future__ import annotations

import asyncio
import random

from consumer import Later

BUSY_ONCE_IN = 100
SECONDS_PER_MAIL = 0.02


class MailServerBusy(Later):
    """No fault of ours: try again later."""


async def send_mail(customer: str, subject: str, attempts_before: int) -> None:
    """Raises MailServerBusy, more seldom the more often it was tried."""
    await asyncio.sleep(SECONDS_PER_MAIL)
    if random.randrange(BUSY_ONCE_IN * (attempts_before + 1)) == 0:
        raise MailServerBusy(f"no mail to {customer} now ({subject})")
