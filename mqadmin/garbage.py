"""How often a process of ours looks for objects that refer to each other and are of no use any more."""

from __future__ import annotations

import gc

# Python's own number is 700. What a start loads, half a million objects that stay, is then looked at again and again:
# a tenth of the processor time of a start.
LOOK_AFTER_OBJECTS = 10_000


def look_less_often() -> None:
    """Has Python look after `LOOK_AFTER_OBJECTS` new ones. A program calls it before it loads the apps."""
    gc.set_threshold(LOOK_AFTER_OBJECTS, *gc.get_threshold()[1:])
