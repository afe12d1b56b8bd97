"""How an alert goes on from one look to the next. Pure: what was, whether it holds, and the time in; what is out.

    holds           (nothing) → pending → firing, when it has held for `for_s`
    does not hold   pending → (nothing); firing → resolved, when it has not held for `resolve_s`
    is not known    pending → (nothing); firing stays

After a gap, in which nobody looked, what was pending begins anew; what fired goes on firing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import TextChoices
from django.utils.translation import pgettext_lazy


class State(TextChoices):
    PENDING = "pending", pgettext_lazy("alert", "pending")
    FIRING = "firing", pgettext_lazy("alert", "firing")
    RESOLVED = "resolved", pgettext_lazy("alert", "resolved")


@dataclass(frozen=True, slots=True)
class Timing:
    """For how long a condition must hold before it fires, and must not before it resolves."""

    for_s: int = 0
    resolve_s: int = 0


@dataclass(frozen=True, slots=True)
class Track:
    """`since`: since when it has held. `calm_since`: of what fires, since when it has not held."""

    state: State
    since: datetime
    fired_at: datetime | None = None
    calm_since: datetime | None = None
    resolved_at: datetime | None = None


def step(was: Track | None, holds: bool | None, timing: Timing, now: datetime, *, is_gap: bool = False) -> Track | None:
    """Returns what is now; None: nothing to tell. `is_gap`: nobody looked for longer than a few turns."""
    if was is not None and was.state == State.FIRING:
        return _firing(was, holds, timing, now)
    if not holds:
        return None
    since = now if was is None or is_gap else was.since
    if now - since >= timedelta(seconds=timing.for_s):
        return Track(State.FIRING, since, fired_at=now)
    return Track(State.PENDING, since)


def _firing(was: Track, holds: bool | None, timing: Timing, now: datetime) -> Track:
    if holds is None:
        return was
    if holds:
        return replace(was, calm_since=None)
    calm_since = was.calm_since or now
    if now - calm_since >= timedelta(seconds=timing.resolve_s):
        return replace(was, state=State.RESOLVED, calm_since=calm_since, resolved_at=now)
    return replace(was, calm_since=calm_since)
