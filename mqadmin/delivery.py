"""Deliveries: rows that are handed out to workers, tried, tried again with growing pauses, and given up.

One is claimed by conditional update for `claimed_for`, and its attempt counted, before anything is sent. A worker that
ends in between leaves it to the next one: so a message may come twice, under the same key, and is never lost.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from django.db import models
from django.db.models import F, QuerySet
from django.utils.translation import gettext_noop

logger = logging.getLogger(__name__)

HANDED_OUT_MAX = 50

_INTERNAL_ERROR = gettext_noop("an error of this console; its log has more")

M = TypeVar("M", bound=models.Model)


class DeliveryState(models.TextChoices):
    """What became of it. WAITING: it is due at `due_at`, for the first time or again."""

    WAITING = "waiting", "waiting"
    SENT = "sent", "sent"
    FAILED = "failed", "failed"


class NotDelivered(Exception):
    """Nobody took it; the text says why. `is_for_good`: another try would find the same."""

    def __init__(self, words: str, *, is_for_good: bool = False) -> None:
        super().__init__(words)
        self.is_for_good = is_for_good


@dataclass(frozen=True, slots=True)
class Deliveries(Generic[M]):
    """Rows of a model with `state`, `attempt_count`, `due_at`, `ended_at` and `error`.

    After each attempt that failed, `pauses_s` says how long the next one waits; after the last one it is given up.
    """

    model: type[M]
    pauses_s: Sequence[int]
    claimed_for: timedelta
    error_chars_max: int

    @property
    def attempts_max(self) -> int:
        return len(self.pauses_s) + 1

    def hand_out(self, now: datetime) -> list[tuple[int, int]]:
        """Claims those that are due; returns their keys, each with the number of its attempt."""
        waiting = self.model._default_manager.filter(state=DeliveryState.WAITING, due_at__lte=now)
        claimed = []
        for pk, count in list(waiting.order_by("due_at", "pk").values_list("pk", "attempt_count")[:HANDED_OUT_MAX]):
            mine = waiting.filter(pk=pk, attempt_count=count)
            if mine.update(attempt_count=F("attempt_count") + 1, due_at=now + self.claimed_for):
                claimed.append((pk, count + 1))
        return claimed

    def claimed(self, pk: int, attempt: int) -> QuerySet[M]:
        """Returns the row that was handed out under this number, none where another attempt has it."""
        return self.model._default_manager.filter(pk=pk, attempt_count=attempt, state=DeliveryState.WAITING)

    def attempt(
        self, pk: int, attempt: int, now: datetime, send: Callable[[], None], *, is_last: bool = False
    ) -> tuple[DeliveryState, str]:
        """Sends what was claimed; returns its state, and why it failed, "" where it did not.

        `send` raises NotDelivered; what else it raises is an error of this console, tried again like others.
        """
        error, is_for_good = self._try(pk, send)
        values: dict[str, object] = {"error": error[: self.error_chars_max]}
        if error and not (is_for_good or is_last) and attempt < self.attempts_max:
            state, values["due_at"] = DeliveryState.WAITING, now + timedelta(seconds=self.pauses_s[attempt - 1])
        else:
            state = DeliveryState.FAILED if error else DeliveryState.SENT
            values["ended_at"] = now
        self.model._default_manager.filter(pk=pk, attempt_count=attempt).update(state=state, **values)
        return state, error

    def _try(self, pk: int, send: Callable[[], None]) -> tuple[str, bool]:
        try:
            send()
        except NotDelivered as error:
            return str(error), error.is_for_good
        except Exception as error:
            # Without what it says: an error of a library may have an address in it.
            where = "".join(traceback.format_tb(error.__traceback__))
            logger.error("%s %s failed: %s\n%s", self.model._meta.verbose_name, pk, type(error).__name__, where)
            return _INTERNAL_ERROR, False
        return "", False
