"""Waits for the first cycles of today's samples: a report asked for right after a start has nothing to tell yet.

Two cycles are needed: what came in and was consumed is known from one sample to the next. The second one has to have
held for a second when the history is appended. The wait holds nothing: a worker that is stopped ends it at once, by its
signal, and leaves nothing behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import date

from django.utils import timezone
from django.utils.translation import gettext as _

from mqadmin.clusters.models import Cluster
from mqadmin.lag.models import GroupSample, SampledSpan, SpanState
from mqadmin.lag.sampling import CYCLE_S
from mqadmin.reports.periods import day_bounds

# Five cycles of sampling: the first of a new install may find that nothing follows its cluster yet.
FIRST_CYCLE_WAIT_S = 150.0
_POLL_S = 1.0


def has_two_cycles(cluster: Cluster, day: date) -> bool:
    """Tells whether there are two cycles, since the first sample of this day or later, that an append has now."""
    since_s = int(day_bounds(day)[0].timestamp())
    of_day = GroupSample.objects.filter(cluster=cluster, at_s__gte=since_s)
    first_s = of_day.order_by("at_s").values_list("at_s", flat=True).first()
    if first_s is None:
        return False
    # Less than one cycle, since cycles begin a little early or late; what is of this second has held for no time.
    second = SampledSpan.objects.filter(
        cluster=cluster, until_s__gt=first_s + CYCLE_S // 2, until_s__lt=int(timezone.now().timestamp())
    )
    return second.exclude(state=SpanState.FAILED).exists()


def wait_for_first_cycle(
    clusters: Sequence[Cluster],
    day: date,
    *,
    pause: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Returns when one of the clusters has two cycles; False when none has within FIRST_CYCLE_WAIT_S."""
    give_up_at = clock() + FIRST_CYCLE_WAIT_S
    while not any(has_two_cycles(cluster, day) for cluster in clusters):
        if clock() >= give_up_at:
            return False
        pause(_POLL_S)
    return True


def nothing_sampled(clusters: Sequence[Cluster], *, is_today: bool) -> str:
    """Returns why there is nothing to report, and what to do about it: of today, as it was waited for."""
    if not is_today:
        return _(
            "Nothing was sampled on these days. A cluster is sampled from when it is added, as long as workers run: "
            "ask for later days."
        )
    notes = (_last_note(cluster) for cluster in clusters)
    note = next((note for note in notes if note), _("no cycle of sampling was begun: look whether the workers run"))
    words = _(
        "Nothing was sampled today, and no sample came within %(n)s s: %(note)s. Look whether the page of the cluster "
        "says that it is followed or polled; a minute after that, ask for the report again."
    )
    return words % {"n": round(FIRST_CYCLE_WAIT_S), "note": note}


def _last_note(cluster: Cluster) -> str:
    """Returns what the latest cycle of a cluster says, "" where there was none."""
    span = cluster.sampled_spans.order_by("-since_s", "-pk").first()
    if span is None:
        return ""
    return span.note or _("it has no group yet")
