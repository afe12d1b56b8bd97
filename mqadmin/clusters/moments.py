"""Moments as brokers tell them: milliseconds since the epoch, where there is one. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

# The end of the year 9999, the last that a datetime can be.
MOMENT_MS_MAX = 253_402_300_799_999


def moment_or_none(ms: int) -> datetime | None:
    """Returns the moment; None for 0 and -1, with which RocketMQ writes "there is none", and for what is no time."""
    return datetime.fromtimestamp(ms / 1000, UTC) if 0 < ms <= MOMENT_MS_MAX else None
