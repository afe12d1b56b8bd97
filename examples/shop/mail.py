"""A simulated mail server: busy now and then, so that retries can be seen; and it knows mailboxes that are closed."""

from __future__ import annotations

import asyncio
import random

from consumer import Later

BUSY_ONCE_IN = 100
MAIL_DELAY_S = 0.02
CLOSED_MAILBOXES = ("zoe",)
_CHANCE = random.Random()


class MailServerBusy(Later):
    """The mail can be sent later."""


class MailboxClosed(Exception):
    """The mail can never be sent."""


async def send_mail(
    customer: str, subject: str, attempts_before: int, *, chance: random.Random = _CHANCE, delay_s: float = MAIL_DELAY_S
) -> None:
    """Raises MailServerBusy, less often after each attempt, and MailboxClosed."""
    await asyncio.sleep(delay_s)
    if customer in CLOSED_MAILBOXES:
        raise MailboxClosed(f"{customer} has no mailbox any more")
    if chance.randrange(BUSY_ONCE_IN * (attempts_before + 1)) == 0:
        raise MailServerBusy(f"no mail to {customer} now ({subject})")
