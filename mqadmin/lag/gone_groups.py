"""Keeps what a deleted group had in the hot window and the history has not yet: its rows go with it.

Kept apart, since nothing but the history asks for a group that is not there. As long as nobody appends, nothing is
kept; `retention.py` removes it by its age like the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from mqadmin.clusters.bulk import CHUNK
from mqadmin.clusters.models import Cluster, Group
from mqadmin.lag.models import GoneGroup, GoneSample, GroupSample, SamplingState


class GroupGone(NamedTuple):
    """From then on nothing that was sampled of the group holds."""

    at_s: int
    group_id: int


Row = tuple[int, int, int, str, str, bytes | memoryview]


def keep(group: Group, now: datetime) -> int:
    """Keeps the samples of a group that is about to be deleted; returns how many rows were written."""
    state = SamplingState.objects.filter(cluster=group.cluster_id, appended_until_s__isnull=False).first()
    rows = GroupSample.objects.filter(group=group).order_by("at_s", "pk")
    if state is None or not (rows := rows.filter(at_s__gte=state.appended_until_s)).exists():
        return 0
    at_s = int(now.timestamp())
    gone = GoneGroup.objects.create(cluster_id=group.cluster_id, group_id=group.pk, name=group.name, at_s=at_s)
    kept = GoneSample.objects.bulk_create(
        (
            GoneSample(gone=gone, topic_name=row.topic_name, at_s=row.at_s, packed=row.packed)
            for row in rows.iterator(CHUNK)
        ),
        batch_size=CHUNK,
    )
    return len(kept) + 1


def rows(cluster: Cluster, since_s: int, until_s: int) -> Iterator[Row]:
    """Yields what was sampled of gone groups, oldest first, as `hot_window.py` reads the others."""
    kept = GoneSample.objects.filter(gone__cluster=cluster, at_s__gte=since_s, at_s__lt=until_s)
    names = ("at_s", "pk", "gone__group_id", "gone__name", "topic_name", "packed")
    yield from kept.order_by("at_s", "pk").values_list(*names).iterator(CHUNK)


def ends(cluster: Cluster, since_s: int, until_s: int) -> Iterator[GroupGone]:
    """Yields when groups went, oldest first."""
    found = GoneGroup.objects.filter(cluster=cluster, at_s__gte=since_s, at_s__lt=until_s).order_by("at_s", "pk")
    for at_s, group_id in found.values_list("at_s", "group_id"):
        yield GroupGone(at_s, group_id)


def oldest_s(cluster: Cluster) -> int | None:
    found = GoneSample.objects.filter(gone__cluster=cluster).order_by("at_s")
    return found.values_list("at_s", flat=True).first()


def remove(cluster: Cluster, before_s: int) -> int:
    """Removes groups that were gone before; returns how many rows went."""
    return GoneGroup.objects.filter(cluster=cluster, at_s__lt=before_s).delete()[0]
