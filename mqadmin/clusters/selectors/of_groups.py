"""Groups: their list, and the page of one with its members and queues."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group, Member, QueueOffset, Subscription
from mqadmin.clusters.progress import attach_ends
from mqadmin.clusters.selectors.lists import ListPage
from mqadmin.clusters.selectors.of_clusters import cluster_head
from mqadmin.clusters.selectors.sorted_rows import Narrowing, SortedRows

DEPARTED_WITHIN = timedelta(days=1)
DEPARTED_MAX = 20

# Name of a sort in the address → column.
GROUP_SORTS = {
    "verdict": "verdict_rank",
    "name": "name",
    "lag": "lag",
    "behind": "behind_since",
    "in": "in_per_s",
    "out": "out_per_s",
    "members": "member_count",
}


@dataclass(frozen=True, slots=True)
class GroupPage:
    """`members` have their `queues`. `departed`: members that left within the last day, the latest first."""

    now: datetime
    cluster: Cluster
    group: Group
    members: tuple[Member, ...]
    departed: tuple[Member, ...]
    queues: tuple[QueueOffset, ...]
    subscriptions: tuple[Subscription, ...]


def groups(
    cluster_name: str,
    *,
    filter: str = "",
    verdict: str = "",
    is_system_shown: bool = False,
    sort: str = "verdict",
    is_descending: bool = False,
    page: int = 1,
    further: Narrowing[Group] | None = None,
) -> ListPage[Group]:
    """Reads a page of groups. `verdict` "" shows all; an unknown `sort` sorts by verdict, the most urgent first.

    `further` leaves out more, by what other subjects know.
    """
    cluster = cluster_head(cluster_name)
    sort = sort if sort in GROUP_SORTS else "verdict"
    found = group_rows(
        cluster,
        filter=filter,
        verdict=verdict,
        is_system_shown=is_system_shown,
        sort=sort,
        is_descending=is_descending,
    )
    if further is not None:
        found = further(cluster, found)
    return found.page(cluster, page, sort=sort, is_descending=is_descending, filter=filter)


def group_rows(
    cluster: Cluster,
    *,
    filter: str = "",
    verdict: str = "",
    is_system_shown: bool = False,
    sort: str = "verdict",
    is_descending: bool = False,
) -> SortedRows[Group]:
    """Returns the rows of the list of groups, to be cut. `sort` is one of GROUP_SORTS."""
    found = cluster.groups.all()
    if not is_system_shown:
        found = found.filter(is_system=False)
    if filter:
        found = found.filter(name__icontains=filter)
    if verdict:
        found = found.filter(verdict=verdict)
    # The longest behind is the one with the earliest moment.
    return SortedRows(found, GROUP_SORTS[sort], is_descending != (sort == "behind"))


def group_head(cluster_name: str, group_name: str) -> Group:
    return cluster_head(cluster_name).groups.get(name=group_name)


def verdict_counts(cluster_name: str) -> dict[str, int]:
    """Counts the groups of each verdict, without those of the system; a verdict that none has is absent."""
    cluster = Cluster.objects.get(name=cluster_name)
    counted = cluster.groups.filter(is_system=False).values("verdict").order_by("verdict").annotate(count=Count("pk"))
    return {row["verdict"]: row["count"] for row in counted}


def group_page(cluster_name: str, group_name: str) -> GroupPage:
    now = timezone.now()
    cluster = cluster_head(cluster_name)
    group = cluster.groups.get(name=group_name)
    queues = attach_ends(cluster.pk, group.queue_offsets.order_by("topic_name", "broker_name", "queue_id"))
    members = list(group.members.filter(left_at=None).order_by("client_id"))
    for member in members:
        member.queues = [queue for queue in queues if queue.owner == member.client_id]
    departed = group.members.filter(left_at__gte=now - DEPARTED_WITHIN).order_by("-left_at")[:DEPARTED_MAX]
    return GroupPage(
        now=now,
        cluster=cluster,
        group=group,
        members=tuple(members),
        departed=tuple(departed),
        queues=tuple(queues),
        subscriptions=tuple(group.subscriptions.filter(ended_at=None).order_by("topic_name", "client_id")),
    )
