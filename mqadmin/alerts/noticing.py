"""Which alerts are told now, and which of them together. Pure.

Alerts of one rule in one cluster have one cause more often than not (a broker that is away, a deploy), so they are told
together: what fires in the same turn is one notice, and what follows is gathered for GATHER_FOR after it. What was told
to fire is told to have resolved. What nobody acknowledged for as long as its rule says is told to further receivers,
once. What is silenced is told of when the silence has ended, if it fires still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import TextChoices
from django.utils.translation import pgettext_lazy

GATHER_FOR = timedelta(minutes=5)

# Rule and cluster.
Key = tuple[int, int]


class NoticeKind(TextChoices):
    FIRED = "fired", pgettext_lazy("notice", "fires")
    RESOLVED = "resolved", pgettext_lazy("notice", "resolved")
    ESCALATED = "escalated", pgettext_lazy("notice", "not acknowledged")
    TEST = "test", pgettext_lazy("notice", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert that fires, or has resolved. Moments are those at which it was told, and acknowledged; None: not yet."""

    id: int
    key: Key
    is_firing: bool
    is_silent: bool = False
    told_at: datetime | None = None
    resolve_told_at: datetime | None = None
    acknowledged_at: datetime | None = None
    escalated_at: datetime | None = None
    escalate_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """`alerts`: their ids. `is_for_all`: also those who are told when nobody acknowledges."""

    kind: NoticeKind
    key: Key
    alerts: tuple[int, ...]
    is_for_all: bool = False


def notices(alerts: Iterable[Alert], last_told: Mapping[Key, datetime], now: datetime) -> list[Notice]:
    """Returns what is to be told now; `last_told`: when the rule's receivers were told of the key last."""
    by_key: dict[Key, list[Alert]] = {}
    for alert in alerts:
        by_key.setdefault(alert.key, []).append(alert)
    return [notice for key, some in by_key.items() for notice in _of_key(key, some, last_told.get(key), now)]


def _of_key(key: Key, alerts: list[Alert], last_told: datetime | None, now: datetime) -> list[Notice]:
    is_free = last_told is None or now - last_told >= GATHER_FOR
    fired = [one for one in alerts if one.is_firing and one.told_at is None and not one.is_silent]
    over = [one for one in alerts if not one.is_firing and one.told_at is not None and one.resolve_told_at is None]
    late = [one for one in alerts if _is_late(one, now)]
    found = []
    if fired and is_free:
        found.append(Notice(NoticeKind.FIRED, key, _ids(fired)))
    if late:
        found.append(Notice(NoticeKind.ESCALATED, key, _ids(late), is_for_all=True))
    # Good news that ends the matter does not wait.
    if over and (is_free or not any(one.is_firing for one in alerts)):
        is_for_all = any(one.escalated_at is not None for one in over)
        found.append(Notice(NoticeKind.RESOLVED, key, _ids(over), is_for_all=is_for_all))
    return found


def _is_late(alert: Alert, now: datetime) -> bool:
    if not alert.is_firing or alert.is_silent or alert.escalate_after is None or alert.told_at is None:
        return False
    return alert.acknowledged_at is None and alert.escalated_at is None and now - alert.told_at >= alert.escalate_after


def _ids(alerts: list[Alert]) -> tuple[int, ...]:
    return tuple(sorted(one.id for one in alerts))
