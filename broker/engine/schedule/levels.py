"""The table of delay levels: 1 … n, and how long messages of each wait (`MessageStoreConfig.messageDelayLevel`).

Messages of level n wait in queue n - 1 of the schedule topic. A level above the table counts as the highest.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_LEVELS_TEXT = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
# Each level has a queue, and each change of the table examines all of them.
LEVELS_MAX = 100
# Ten years: a due time must stay a number that a queue entry can hold.
DELAY_MAX_MS = 10 * 366 * 86_400_000
_DIGITS_MAX = 12
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DelayLevelError(ValueError):
    """Raised when a text is no table of levels; names the word that is wrong."""


@dataclass(frozen=True, slots=True)
class DelayLevels:
    """A table of delay levels; `delays_ms[0]` is the delay of level 1."""

    delays_ms: tuple[int, ...]

    @property
    def highest(self) -> int:
        return len(self.delays_ms)

    def __str__(self) -> str:
        """Returns the table as RocketMQ writes it, each level in its largest unit."""
        return " ".join(_write_delay(delay_ms) for delay_ms in self.delays_ms)

    def clamp(self, level: int) -> int:
        """Returns `level` > 0, or the highest level when it is above the table."""
        return min(level, self.highest)

    def delay_ms(self, level: int) -> int:
        """Returns how long a message of `level` > 0 waits."""
        return self.delays_ms[min(level, self.highest) - 1]


def parse_levels(text: str) -> DelayLevels:
    """Parses a table like `"1s 5s 1m 2h"`, units s, m, h, d, of at most `LEVELS_MAX` levels. Raises DelayLevelError."""
    words = text.split()
    if not words:
        raise DelayLevelError("no delay level is named")
    if len(words) > LEVELS_MAX:
        raise DelayLevelError(f"{len(words)} delay levels are too many, give {LEVELS_MAX} at most")
    delays = tuple(_parse_delay(word) for word in words)
    return DelayLevels(delays)


def _parse_delay(word: str) -> int:
    number, unit = word[:-1], word[-1:].lower()
    if unit not in _UNIT_MS or not number.isdecimal():
        raise DelayLevelError(f"delay level {word[:40]!r} is not a number with one of the units s, m, h, d")
    if len(number) > _DIGITS_MAX or int(number) * _UNIT_MS[unit] > DELAY_MAX_MS:
        raise DelayLevelError(f"delay level {word[:40]!r} is too long, give {DELAY_MAX_MS // _UNIT_MS['d']}d at most")
    return int(number) * _UNIT_MS[unit]


def _write_delay(delay_ms: int) -> str:
    for unit, unit_ms in reversed(_UNIT_MS.items()):
        if delay_ms % unit_ms == 0 and delay_ms:
            return f"{delay_ms // unit_ms}{unit}"
    return "0s"
