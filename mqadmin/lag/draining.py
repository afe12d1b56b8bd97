"""How fast a group's lag shrinks, and how far that can be relied on. Pure: the sampled lag of five minutes in.

What is compared are the two halves of the window, so the confidence has a rule that a page can name:

    STEADY       both halves shrink, and the faster one at most STEADY_RATIO times as fast; or neither shrinks
    UNEVEN       else: the later half is what holds now, so its pace counts
    FEW_SAMPLES  less than the window was sampled, or not without a gap: the present rates are all there is

    lag 900 five minutes ago, 600 in the middle, 300 now: 2 a second, steady
    lag   0 five minutes ago, 800 in the middle, 500 now: 2 a second, uneven
"""

from __future__ import annotations

from mqadmin.clusters.figures import NOT_SAMPLED, DrainConfidence, Pace
from mqadmin.lag import history

# As growth is judged over (`verdicts.py`): so a group is measured again when a sample leaves it.
WINDOW_S = 300
HALF_S = WINDOW_S // 2
# Samples are of half minutes: of five in a half, one may be more or less.
STEADY_RATIO = 2


def pace(packed: bytes | memoryview, now_s: int, lag: int | None) -> Pace:
    """Returns how many messages a second the lag loses (below 0: it grows)."""
    before, middle = history.lag_at(packed, now_s - WINDOW_S), history.lag_at(packed, now_s - HALF_S)
    if lag is None or before is None or middle is None or not history.is_known_after(packed, now_s - WINDOW_S):
        return NOT_SAMPLED
    early, late = (before - middle) / HALF_S, (middle - lag) / HALF_S
    slow, fast = sorted((early, late))
    is_steady = fast <= 0 or (slow > 0 and fast <= STEADY_RATIO * slow)
    if is_steady:
        return Pace(round((before - lag) / WINDOW_S, 3), DrainConfidence.STEADY)
    return Pace(round(late, 3), DrainConfidence.UNEVEN)
