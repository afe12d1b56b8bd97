"""SVG path data of a sparkline. Pure geometry: the server draws it, so pages need no chart script.

A value that was not observed is None and leaves a gap. The scale starts at 0: a lag that varies around 1,000 must not
look like one that doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

# room for the stroke and the end point, so that neither is cut at the edge
INSET = 2.0
# a lag well below this is drawn near the floor: a few messages that wait are no mountain
TOP_MIN = 50
STEPS = 60


@dataclass(frozen=True, slots=True)
class Box:
    width: int
    height: int


SMALL = Box(96, 18)
WIDE = Box(200, 30)


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Path data of the line and of the area below it. `end` is the newest point, None when it was not observed."""

    line: str
    area: str
    end: tuple[float, float] | None


def resampled(
    steps: Sequence[tuple[datetime, int | None]], start: datetime, end: datetime, count: int = STEPS
) -> list[int | None]:
    """Returns the maximum of a step line in each of `count` equal intervals from `start` to `end`; None: not known.

    `steps` says "from this moment on it was that", oldest first.
    """
    width = (end - start) / count
    values: list[int | None] = []
    held: int | None = None
    position = 0
    for index in range(count):
        highest = held
        while position < len(steps) and steps[position][0] <= start + width * (index + 1):
            held = steps[position][1]
            highest = held if highest is None or held is None else max(highest, held)
            position += 1
        values.append(highest)
    return values


def draw(values: Sequence[float | None], box: Box = SMALL, top_min: int = TOP_MIN) -> Sparkline | None:
    """Returns the line of `values`, oldest first; None when fewer than two were observed.

    The top of the box is the highest value, at least `top_min`. Example: [0, 100] is a line from the bottom left to the
    top right.
    """
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    top = max(*known, top_min)
    step = (box.width - 2 * INSET) / (len(values) - 1)
    points = [
        None if value is None else (round(INSET + index * step, 1), round(_height(value / top, box), 1))
        for index, value in enumerate(values)
    ]
    stretches = _stretches(points)
    return Sparkline(
        line="".join(_path(stretch) for stretch in stretches),
        area="".join(_path(stretch) + _close(stretch, box) for stretch in stretches),
        end=points[-1],
    )


def _height(share: float, box: Box) -> float:
    return box.height - INSET - max(share, 0.0) * (box.height - 2 * INSET)


def _stretches(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    stretches: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is not None:
            stretches[-1].append(point)
        elif stretches[-1]:
            stretches.append([])
    return [stretch for stretch in stretches if stretch]


def _path(stretch: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in _corners(stretch))


def _corners(stretch: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Drops the points inside a level stretch: most lines are level most of the time."""
    last = len(stretch) - 1
    return [
        point
        for index, point in enumerate(stretch)
        if index in (0, last) or not stretch[index - 1][1] == point[1] == stretch[index + 1][1]
    ]


def _close(stretch: Sequence[tuple[float, float]], box: Box) -> str:
    floor = box.height - INSET
    return f"L{stretch[-1][0]} {floor}L{stretch[0][0]} {floor}Z"
