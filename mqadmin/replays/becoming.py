"""What became of a replayed message after it was sent, as far as committed offsets and failed attempts tell. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import TextChoices
from django.utils.translation import pgettext_lazy


class Became(TextChoices):
    """What became of one. FAILED_AGAIN: an attempt failed, and what came of the next one was not seen."""

    WAITING = "waiting", pgettext_lazy("sent message", "the group has yet to read it")
    CONSUMED = "consumed", pgettext_lazy("sent message", "consumed")
    RETRYING = "retrying", pgettext_lazy("sent message", "failed again, waits for its next attempt")
    FAILED_AGAIN = "failed_again", pgettext_lazy("sent message", "failed again")
    DEAD_AGAIN = "dead_again", pgettext_lazy("sent message", "a dead letter again")
    NOT_KNOWN = "not_known", pgettext_lazy("sent message", "not known")


@dataclass(frozen=True, slots=True)
class Seen:
    """`failed_attempt`: which one failed last, None where none did; `retry_at`: when the next one comes, where told.

    `has_passed`: the group's committed offset is behind the message; None where that is not known. `are_failures_seen`:
    the failed attempts of its broker are read, up to a moment after it was sent.
    """

    is_dead_again: bool = False
    failed_attempt: int | None = None
    retry_at: datetime | None = None
    has_passed: bool | None = None
    are_failures_seen: bool = True


def became(seen: Seen, now: datetime) -> Became:
    """Returns what became of a message that was sent.

    A member that fails sends the message back before its offset is committed: what is passed, and has no failed
    attempt where these are read, was consumed.
    """
    if seen.is_dead_again:
        return Became.DEAD_AGAIN
    if seen.failed_attempt is not None:
        return Became.RETRYING if seen.retry_at is not None and seen.retry_at > now else Became.FAILED_AGAIN
    if seen.has_passed is None or (seen.has_passed and not seen.are_failures_seen):
        return Became.NOT_KNOWN
    return Became.CONSUMED if seen.has_passed else Became.WAITING
