"""What was allowed to which group when: the objectives as they held on a day, for the step that judges by them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from django.db.models import Q, QuerySet

from mqadmin.clusters.models import Cluster
from mqadmin.objectives.models import Objective
from mqadmin.objectives.values import DEFAULT_LAG_S, Allowed, Objectives

# Before and after all samples.
_FIRST_MS, _LAST_MS = 0, 2**62


class Judged(NamedTuple):
    """From `at` until `until` (milliseconds since the epoch) so long might a message wait, and so many (None: any)."""

    consumer_group: str
    at: int
    until: int
    objective_ms: int
    allowed_lag: int | None


def has_objectives(cluster: Cluster, since: datetime, until: datetime) -> bool:
    """Tells whether anything but what ships was said about that time."""
    return _rows(cluster, since, until).exists()


def objectives_held(cluster: Cluster, groups: Collection[str], since: datetime, until: datetime) -> list[Judged]:
    """Returns what held for the groups, from change to change; nothing of those for which only what ships held."""
    rows = list(_rows(cluster, since, until))
    changes = {moment for row in rows for moment in (row.valid_from, row.valid_until) if moment is not None}
    moments = [since, *sorted(moment for moment in changes if since < moment < until)]
    held = [
        (int(moment.timestamp() * 1000), Objectives.of(_allowed(row) for row in rows if _holds(row, moment)))
        for moment in moments
    ]
    return [one for group in sorted(groups) for one in _of_group(group, held)]


def _of_group(group: str, held: list[tuple[int, Objectives]]) -> list[Judged]:
    said = [(at, objectives.of_group(group)) for at, objectives in held]
    if all((one.lag_s, one.lag) == (DEFAULT_LAG_S, None) for _at, one in said):
        return []
    begins = [(_FIRST_MS, said[0][1])]
    begins += [
        (at, one) for (_, before), (at, one) in pairwise(said) if (before.lag_s, before.lag) != (one.lag_s, one.lag)
    ]
    ends = [at for at, _one in begins[1:]] + [_LAST_MS]
    return [Judged(group, at, until, one.lag_s * 1000, one.lag) for (at, one), until in zip(begins, ends, strict=True)]


def _rows(cluster: Cluster, since: datetime, until: datetime) -> QuerySet[Objective]:
    held = Q(valid_until=None) | Q(valid_until__gt=since)
    return Objective.objects.filter(held, cluster=cluster, valid_from__lt=until)


def _holds(row: Objective, moment: datetime) -> bool:
    return row.valid_from <= moment and (row.valid_until is None or row.valid_until > moment)


def _allowed(row: Objective) -> Allowed:
    return Allowed(row.lag_s, row.lag, row.group, row.is_declared)
