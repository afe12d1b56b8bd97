"""Counts, rates, durations and ages as text, in the language that is active. Pure; knows no HTML.

Each has one spelling, so that a lag reads the same on every page. A figure that is not known never gets here: pages
write "unknown" for it, never 0.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils.translation import gettext, pgettext

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
# below this a tenth of a second says something; above it is noise
TENTHS_BELOW_MS = 10 * SECOND_MS


def count_text(count: int) -> str:
    """Writes a count: 12049 → "12,049"."""
    return f"{count:,}"


def rate_text(per_second: float) -> str:
    """Writes messages per second: 0 → "0", 0.02 → "< 0.1", 0.42 → "0.4", 38.2 → "38"."""
    if per_second == 0:
        return "0"
    if 0 < per_second < 0.05:
        return "< 0.1"
    return f"{per_second:,.1f}" if abs(per_second) < 10 else f"{per_second:,.0f}"


def duration_text(duration_ms: int) -> str:
    """Writes a duration with two units at most: 400 → "0.4 s", 80000 → "1 m 20 s", 277200000 → "3 d 05 h"."""
    if duration_ms < 0:
        return f"−{duration_text(-duration_ms)}"
    if duration_ms < TENTHS_BELOW_MS:
        tenths = f"{duration_ms / SECOND_MS:.1f}".removesuffix(".0")
        return f"{tenths} {second()}"
    if duration_ms < MINUTE_MS:
        return f"{duration_ms // SECOND_MS} {second()}"
    if duration_ms < HOUR_MS:
        return f"{duration_ms // MINUTE_MS} {minute()} {duration_ms % MINUTE_MS // SECOND_MS:02} {second()}"
    if duration_ms < DAY_MS:
        return f"{duration_ms // HOUR_MS} {hour()} {duration_ms % HOUR_MS // MINUTE_MS:02} {minute()}"
    return f"{duration_ms // DAY_MS} {day()} {duration_ms % DAY_MS // HOUR_MS:02} {hour()}"


def round_duration_text(duration_s: int) -> str:
    """Writes a duration that somebody chose in one unit where that is exact: 60 → "1 m", 90 → "1 m 30 s"."""
    for unit_s, unit in ((DAY_MS // SECOND_MS, day), (HOUR_MS // SECOND_MS, hour), (MINUTE_MS // SECOND_MS, minute)):
        if duration_s and duration_s % unit_s == 0:
            return f"{duration_s // unit_s} {unit()}"
    return duration_text(duration_s * SECOND_MS)


def lateness_text(late_ms: int) -> str:
    """Writes how late something was, in milliseconds below a second."""
    if late_ms < SECOND_MS:
        return f"{late_ms:,} {pgettext('unit of time', 'ms')}"
    return duration_text(late_ms)


def second() -> str:
    """Returns the unit as it stands behind a number; live.js gets the same four."""
    return pgettext("unit of time", "s")


def minute() -> str:
    return pgettext("unit of time", "m")


def hour() -> str:
    return pgettext("unit of time", "h")


def day() -> str:
    return pgettext("unit of time", "d")


def milliseconds(duration: timedelta) -> int:
    """Returns the whole milliseconds of a duration."""
    return duration // timedelta(milliseconds=1)


def rough_text(duration: timedelta) -> str:
    """Writes a duration with one unit, for an age: "4 s", "12 m", "3 h", "5 d"."""
    seconds = max(0, int(duration.total_seconds()))
    if seconds < 60:
        return f"{seconds} {second()}"
    if seconds < 3600:
        return f"{seconds // 60} {minute()}"
    if seconds < 86_400:
        return f"{seconds // 3600} {hour()}"
    return f"{seconds // 86_400} {day()}"


def age_text(moment: datetime, now: datetime) -> str:
    """Writes an age: "4 s ago". A moment less than a minute ahead of our clock is "now"."""
    if now - moment < timedelta(seconds=1) and moment - now < timedelta(minutes=1):
        return pgettext("age", "now")
    if moment > now:
        return gettext("in %(duration)s") % {"duration": rough_text(moment - now)}
    return gettext("%(duration)s ago") % {"duration": rough_text(now - moment)}
