"""Prints one log of all children: time, name, line for people (colours only for a terminal), or a JSON object a line.

A line of a child that is a JSON object already gets the child's name as "process"; another one (of a program that is
not ours, or from before the log was set up) is wrapped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

NAME_WIDTH = 9
_COLOURS = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)


class Log:
    """Prints each line at once, with time and name. `now` returns the time; tests pass their own."""

    def __init__(
        self,
        stream: TextIO = sys.stdout,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
        *,
        is_json: bool = False,
    ) -> None:
        self._stream = stream
        self._now = now
        self._is_json = is_json
        self._has_colours = stream.isatty()
        self._colours: dict[str, int] = {}

    def line(self, name: str, text: str) -> None:
        try:
            self._stream.write((self._as_json if self._is_json else self._for_people)(name, text) + "\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            # The reader is gone (`up | head`); the children must still be stopped in order.
            pass

    def _for_people(self, name: str, text: str) -> str:
        label = f"{name:<{NAME_WIDTH}}"
        if self._has_colours:
            colour = self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])
            label = f"\x1b[{colour}m{label}\x1b[0m"
        return f"{self._now():%H:%M:%S} {label} {text}"

    def _as_json(self, name: str, text: str) -> str:
        try:
            entry = json.loads(text)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            moment = self._now().astimezone(UTC)
            time = f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
            entry = {"time": time, "level": "INFO", "message": text}
        return json.dumps({**entry, "process": name})
