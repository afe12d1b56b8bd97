"""Failures put together by one of their fields, by the database: how many died, of how many failures, since when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Min, Sum

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.deadletters.models import Failure
from mqadmin.deadletters.selectors import FailureFilter, failures

# Word in addresses and REST → field of a failure.
GROUPINGS: Mapping[str, str] = {
    "group": "group_name",
    "topic": "origin_topic",
    "tag": "tag",
    "attempts": "attempt_count",
    "class": "failure_class",
    "shape": "shape",
}
# More than a person compares; the largest are shown.
GROUPED_MAX = 200
# Of a value in an address.
VALUE_CHARS_MAX = 500


@dataclass(frozen=True, slots=True)
class GroupedFailures:
    """All failures that have `value` in the field; `share` of all that the filter found, from 0 to 1."""

    value: str
    dead_count: int
    failure_count: int
    first_dead_at: datetime
    last_dead_at: datetime
    share: float


def grouped(cluster: Cluster, wanted: FailureFilter, by: str) -> list[GroupedFailures]:
    """Returns the largest GROUPED_MAX groups. Reads the failures, a thousand of a group at most, no dead letter."""
    field = GROUPINGS[by]
    rows = failures(cluster, wanted).rows.order_by()
    all_dead = rows.aggregate(dead=Sum("dead_count"))["dead"] or 0
    found = rows.values_list(field).annotate(
        dead=Sum("dead_count"), count=Count("pk"), first=Min("first_dead_at"), last=Max("last_dead_at")
    )
    return [
        GroupedFailures(str(value), dead, count, first, last, dead / all_dead if all_dead else 0.0)
        for value, dead, count, first, last in found.order_by("-dead", field)[:GROUPED_MAX]
    ]


def of_one_group(rows: NewestRows[Failure], by: str, value: str) -> NewestRows[Failure]:
    """Returns the failures that have the value in that field; none where it cannot be its value."""
    if by == "attempts" and not value.lstrip("-").isdecimal():
        return NewestRows(rows.rows.none(), rows.column)
    return NewestRows(rows.rows.filter(**{GROUPINGS[by]: value}), rows.column)
