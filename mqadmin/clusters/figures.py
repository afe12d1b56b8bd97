"""Figures of rows as pages show them. Pure values.

A figure's `value` None means "not known"; a page never draws it as 0. Moments are aware datetimes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from mqadmin.clusters import waiting


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and up to when it is true (None: never seen)."""

    value: float | None
    seen_at: datetime | None


NEVER_TOLD = Figure(None, None)


class DrainKind(StrEnum):
    """When the lag will be gone at the present rates."""

    NOW = "now"
    IN = "in"
    NEVER = "never"
    UNKNOWN = "unknown"


class DrainConfidence(StrEnum):
    """How far the time can be relied on; `lag/draining.py` has the rule."""

    STEADY = "steady"
    UNEVEN = "uneven"
    FEW_SAMPLES = "few_samples"


class Pace(NamedTuple):
    """How many messages a second a lag loses, by its samples; `per_s` None: they are too few."""

    per_s: float | None
    confidence: DrainConfidence


NOT_SAMPLED = Pace(None, DrainConfidence.FEW_SAMPLES)


def stored_pace(per_s: float | None, confidence: str) -> Pace:
    """Returns the pace that a row keeps."""
    return NOT_SAMPLED if per_s is None or not confidence else Pace(per_s, DrainConfidence(confidence))


@dataclass(frozen=True, slots=True)
class Drain:
    """`seconds` is set for IN alone, `confidence` for IN and NEVER. `per_s`: the pace that it was reckoned with."""

    kind: DrainKind
    seconds: float | None = None
    confidence: DrainConfidence | None = None
    per_s: float | None = None


class BehindMethod(StrEnum):
    """Whether a waiting time is the store time of the message, or follows from samples of the queue's end."""

    EXACT = "exact"
    FROM_SAMPLES = "from_samples"


@dataclass(frozen=True, slots=True)
class Behind:
    """Since when the next message has been waiting. `method`: "store_time" is exact, "observed" means at least.

    `until`: the sample up to which that was seen, where the cluster is sampled: how old the sample is says nothing of
    the message, which may be consumed by now.
    """

    since: datetime | None
    method: str
    until: datetime | None = None

    @property
    def is_at_least(self) -> bool:
        return self.method == "observed"

    @property
    def told_method(self) -> BehindMethod | None:
        """Returns how it is known, in the word for people and scripts; None where nothing waits, or it is not known."""
        if self.since is None:
            return None
        return BehindMethod.FROM_SAMPLES if self.is_at_least else BehindMethod.EXACT

    def seen_until(self, now: datetime) -> datetime:
        """Returns up to when the message is known to have waited."""
        return min(now, self.until) if self.until is not None else now

    @property
    def is_just_seen(self) -> bool:
        """Tells whether the message was first seen in the newest sample, whose moments have whole seconds."""
        if not self.is_at_least or self.since is None or self.until is None:
            return False
        return self.until - self.since < timedelta(seconds=1)


NOT_BEHIND = Behind(None, "")


def lag(committed_offset: int | None, max_offset: int | None) -> int | None:
    """Returns how many messages lie between committed offset and queue end, None while one of them is not known.

    Never below 0: the two are read at different moments. Nobody is behind on a queue that never held a message.
    """
    if max_offset == 0:
        return 0
    if committed_offset is None or max_offset is None:
        return None
    return max(0, max_offset - committed_offset)


def rewound_count(committed_offset: int | None, rewound_from: int | None, max_offset: int | None) -> int:
    """Returns how many messages come again that were consumed before the offset was moved back."""
    if committed_offset is None or rewound_from is None or max_offset is None:
        return 0
    return max(0, min(rewound_from, max_offset) - committed_offset)


def behind(
    lag: int | None,
    committed_offset: int | None,
    told: Behind,
    max_history: bytes | memoryview,
    last_stored_at: datetime | None,
) -> Behind:
    """Returns since when the message at the committed offset has been waiting: the broker's time, else ours.

    `told`: what the group's row of the queue has; the last two are of the queue's end.
    """
    if not lag or committed_offset is None:
        return NOT_BEHIND
    if told.since is not None:
        return told
    if lag == 1 and last_stored_at is not None:
        return Behind(last_stored_at, "store_time")
    since_s = waiting.waiting_since_s(max_history, committed_offset)
    return NOT_BEHIND if since_s is None else Behind(datetime.fromtimestamp(since_s, UTC), "observed")


@dataclass(frozen=True, slots=True)
class DueKind:
    """One kind of due things: delay, timer, transaction or retention.

    `next_due_at` is in the past while it is late, None when nothing waits; `late_ms` None before the first.
    """

    kind: str
    next_due_at: datetime | None
    waiting_count: int
    late_ms: int | None

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> DueKind:
        """Reads an entry of `Broker.scheduler_kinds`."""
        late_ms = state["late_ms"]
        return cls(
            state["kind"], _moment(state["next_due_ms"]), state["waiting_count"], late_ms if late_ms >= 0 else None
        )


@dataclass(frozen=True, slots=True)
class SchedulerSummary:
    """`driver` "": no driver holds the lease. `late_ms` of the last delivery, None before the first."""

    driver: str
    since: datetime | None
    late_ms: int | None
    waiting_count: int | None
    kinds: tuple[DueKind, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionDifference:
    """What a member subscribes to at a topic where others of its group subscribe otherwise.

    `expression` None: it does not subscribe. `others`: some clients that differ now, none when it `is_over`.
    """

    topic: str
    expression: str | None
    expression_type: str | None
    sub_version: int
    since: datetime | None
    last_seen_at: datetime | None
    is_over: bool
    others: tuple[str, ...]

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> SubscriptionDifference:
        """Reads an entry of `Member.differences`."""
        return cls(
            topic=state["topic"],
            expression=state["expression"],
            expression_type=state["expression_type"],
            sub_version=state["sub_version"],
            since=_moment(state["since_ms"]),
            last_seen_at=_moment(state["last_seen_ms"]),
            is_over=state["is_over"],
            others=tuple(state["others"]),
        )


def _moment(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms > 0 else None


def drain(lag: int | None, in_per_s: float | None, out_per_s: float | None, pace: Pace = NOT_SAMPLED) -> Drain:
    """Returns when the lag is gone at the pace of its samples; where they are too few, at the present rates."""
    if lag == 0:
        return Drain(DrainKind.NOW)
    per_s = pace.per_s
    if per_s is None and in_per_s is not None and out_per_s is not None:
        per_s = round(out_per_s - in_per_s, 3)
    if lag is None or per_s is None:
        return Drain(DrainKind.UNKNOWN)
    if per_s <= 0:
        return Drain(DrainKind.NEVER, None, pace.confidence, per_s)
    return Drain(DrainKind.IN, lag / per_s, pace.confidence, per_s)
