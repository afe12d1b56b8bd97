"""Where reading begins and ends, as an option says it: a word, a time, or an offset for each queue. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from remoting.spark.errors import OptionError

# In offsets by queue, as in Spark's source for Kafka.
LATEST = -1
EARLIEST = -2
# The name that stands for all queues that are not named.
OTHERS = "*"


class Edge(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Moment:
    """The first message that was stored then or later; `ms` since the epoch."""

    ms: int


@dataclass(frozen=True, slots=True)
class Named:
    """An offset by queue; LATEST and EARLIEST are those of the queue."""

    offsets: tuple[tuple[str, int], ...]

    def for_queues(self, option: str, queues: Collection[str]) -> dict[str, int]:
        """Returns the offset of each of `queues`. Raises OptionError where one is missing, or named and not there."""
        given = dict(self.offsets)
        others = given.pop(OTHERS, None)
        unknown = sorted(given.keys() - set(queues))
        if unknown:
            raise OptionError(f"{option} names {_listed(unknown)}; the topic has {_listed(sorted(queues))}")
        missing = sorted(set(queues) - given.keys())
        if missing and others is None:
            raise OptionError(f'{option} does not name {_listed(missing)}: add them, or "{OTHERS}" for all others')
        return {queue: given.get(queue, others if others is not None else EARLIEST) for queue in queues}


Position = Edge | Moment | Named


def read_offsets(option: str, text: str) -> Position:
    """Reads `earliest`, `latest` or `{"broker-a:0": 12, "*": -2}`. Raises OptionError."""
    word = text.strip()
    if word.lower() in (edge.value for edge in Edge):
        return Edge(word.lower())
    try:
        found = json.loads(word)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(_is_offset(value) for value in found.values()):
        raise OptionError(
            f"{option} is {text!r}: earliest, latest, or offsets by queue as JSON, such as"
            f' {{"broker-a:0": 12, "{OTHERS}": {EARLIEST}}} ({EARLIEST} is earliest, {LATEST} latest)'
        )
    return Named(tuple(sorted(found.items())))


def read_moment(option: str, text: str) -> Moment:
    """Reads milliseconds since the epoch, or an ISO time, which is UTC where it names no zone. Raises OptionError."""
    word = text.strip()
    try:
        if word.isascii() and word.isdigit():
            # Beyond the year 9999 it is no time in milliseconds.
            return Moment(round(datetime.fromtimestamp(int(word) / 1000, UTC).timestamp() * 1000))
        moment = datetime.fromisoformat(word)
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return Moment(max(0, round(zoned.timestamp() * 1000)))
    except (ValueError, OverflowError, OSError) as error:
        raise OptionError(
            f"{option} is {text!r}: milliseconds since the epoch, or an ISO time such as 2026-11-22T14:00:00+08:00"
        ) from error


def _is_offset(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= EARLIEST


def _listed(names: list[str], count_max: int = 10) -> str:
    shown = ", ".join(names[:count_max])
    return f"{shown} and {len(names) - count_max} more" if len(names) > count_max else shown or "no queue"
