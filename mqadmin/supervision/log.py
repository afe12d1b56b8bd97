"""Prints one readable log of all children: time, name, line. Colours only for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import TextIO

NAME_WIDTH = 9
_COLOURS = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)


class Log:
    """Prints each line at once, with time and name. `now` returns the time; tests pass their own."""

    def __init__(self, stream: TextIO = sys.stdout, now: Callable[[], datetime] = datetime.now) -> None:
        self._stream = stream
        self._now = now
        self._has_colours = stream.isatty()
        self._colours: dict[str, int] = {}

    def line(self, name: str, text: str) -> None:
        label = f"{name:<{NAME_WIDTH}}"
        if self._has_colours:
            colour = self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])
            label = f"\x1b[{colour}m{label}\x1b[0m"
        try:
            self._stream.write(f"{self._now():%H:%M:%S} {label} {text}\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            # The reader is gone (`up | head`); the children must still be stopped in order.
            pass
