"""What pages read of lag, beside the groups themselves: their histories."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import prefetch_related_objects

from mqadmin.clusters.models import Group
from mqadmin.lag import history
from mqadmin.lag.models import LagHistory


class LagPoint(NamedTuple):
    """From `at` on the lag was this; None: not known."""

    at: datetime
    lag: int | None


def prefetch_histories(groups: Sequence[Group]) -> None:
    """Reads the last hour of each group's lag with one query; `lag_points` finds it there."""
    prefetch_related_objects(groups, "lag_history")


def packed_history(group: Group) -> bytes:
    """Returns the last hour of a group's lag as it is stored; empty before the first sample."""
    return bytes(LagHistory.objects.filter(group=group).values_list("samples", flat=True).first() or b"")


def lag_points(packed: bytes | memoryview, now: datetime) -> list[LagPoint]:
    """Returns the steps of the last hour: of `Cluster.lag_history`, or of a group's `lag_history.samples`."""
    return [
        LagPoint(datetime.fromtimestamp(sample.at_s, UTC), sample.lag)
        for sample in history.window(packed, int(now.timestamp()))
    ]
