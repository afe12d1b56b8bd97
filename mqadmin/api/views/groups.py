"""`…/groups`: consumer groups, those that need attention first, and what is in one of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.listing import ListQuery, ListResource, described, filter_field, owner_filter, sort_field
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.groups import (
    CurvePointSerializer,
    GroupDetailSerializer,
    GroupQueueSerializer,
    GroupSerializer,
    LagPointSerializer,
    MemberSerializer,
    SubscriptionSerializer,
)
from mqadmin.api.views.clusters import lag_rows
from mqadmin.clusters import selectors
from mqadmin.clusters.figures import NEVER_TOLD, Figure
from mqadmin.clusters.held_queues import in_flight_sum, read
from mqadmin.clusters.models import Group, Member, QueueOffset, Subscription, Verdict
from mqadmin.clusters.progress import queue_of
from mqadmin.clusters.selectors.sorted_rows import SortedRows
from mqadmin.lag.broadcasting import of_members
from mqadmin.lag.curves import CurvePoint, curves
from mqadmin.lag.members_progress import held_queues, progress_of_members
from mqadmin.lag.retention import KEPT_FOR_S, within_window
from mqadmin.lag.selectors import LagPoint, packed_history
from mqadmin.ownership.models import Described
from mqadmin.ownership.rows import attach_owners, with_owners

MINUTES_MAX = KEPT_FOR_S // 60


class GroupsQuery(ListQuery):
    q = filter_field("name")
    status = serializers.ChoiceField(
        choices=Verdict.choices, default="", allow_blank=True, help_text="Groups of one verdict alone."
    )
    owner = owner_filter()
    sort = sort_field(selectors.GROUP_SORTS, "verdict")


@described("list_groups", "List groups")
class Groups(ListResource):
    """Consumer groups of a cluster, without those of RocketMQ itself; those that need attention first."""

    row = GroupSerializer
    query = GroupsQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Group]:
        return group_rows(names["cluster"], query)


def group_rows(cluster: str, query: Mapping[str, Any]) -> SortedRows[Group]:
    """Returns the groups that the query string of the list asks for. Raises Cluster.DoesNotExist."""
    head = selectors.cluster_head(cluster)
    found = selectors.group_rows(
        head,
        filter=query["q"].strip(),
        verdict=query["status"],
        sort=query["sort"].removeprefix("-"),
        is_descending=query["sort"].startswith("-"),
    )
    return with_owners(found, head, Described.GROUP, query["owner"])


class GroupDetail(Resource):
    """A consumer group with its settings."""

    @extend_schema(operation_id="get_group", summary="Get a group", responses=GroupDetailSerializer)
    def get(self, request: Request, cluster: str, group: str) -> Response:
        return self.when_changed(
            request,
            {"cluster": cluster, "group": group},
            lambda: self._document(cluster, group),
        )

    def _document(self, cluster: str, group: str) -> Response:
        head = selectors.group_head(cluster, group)
        attach_owners([head], head.cluster, Described.GROUP)
        return Response(GroupDetailSerializer(head).data)


@described("list_group_queues", "List the queues of a group")
class GroupQueues(ListResource):
    """Progress of a group on each queue that it reads."""

    row = GroupQueueSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[QueueOffset]:
        page = selectors.group_page(names["cluster"], names["group"])
        held = held_queues([page.group.pk]).get(page.group.pk, {})
        for queue in page.queues:
            told = held.get(queue_of(queue))
            queue.in_flight = NEVER_TOLD if told is None else Figure(told.of.in_flight, told.told_at)
        return RowsInMemory(page.queues, lambda row: [row.topic_name, row.broker_name, row.queue_id])


class MembersQuery(ListQuery):
    departed = serializers.BooleanField(
        default=False, help_text="The last 20 that left within a day instead of those that are online."
    )


@described("list_group_members", "List the members of a group")
class Members(ListResource):
    """Members of a group that are online, by client id."""

    row = MemberSerializer
    query = MembersQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Member]:
        page = selectors.group_page(names["cluster"], names["group"])
        found = sorted(page.departed, key=lambda one: one.client_id) if query["departed"] else page.members
        own, progress = of_members(page.group), progress_of_members(page.group)
        for member in found:
            member.own_lag = own.get(member.pk)
            told = progress.get(member.pk)
            member.in_flight = (
                NEVER_TOLD if told is None else Figure(in_flight_sum(read(told.queues).values()), told.told_at)
            )
        return RowsInMemory(found, lambda member: [member.client_id])


@described("list_group_subscriptions", "List the subscriptions of a group")
class Subscriptions(ListResource):
    """Subscriptions of a group that are in force: the broker's one table, then each member's own."""

    row = SubscriptionSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Subscription]:
        page = selectors.group_page(names["cluster"], names["group"])
        return RowsInMemory(page.subscriptions, lambda one: [one.topic_name, one.client_id, one.pk])


@described("get_group_lag", "Get the lag of a group")
class GroupLag(ListResource):
    """The last hour of a group's lag: the moments at which it changed, the oldest first."""

    row = LagPointSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[LagPoint]:
        return lag_rows(packed_history(selectors.group_head(names["cluster"], names["group"])))


class CurveQuery(ListQuery):
    minutes = serializers.IntegerField(
        min_value=1, max_value=MINUTES_MAX, default=60, help_text="How far back; the hot window has two days."
    )
    until = serializers.DateTimeField(default=None, help_text="Where it ends: now, if it is not said.")


@described("get_group_curve", "Get the curve of a group's lag and rates")
class GroupCurve(ListResource):
    """Lag, rates and waiting time of the last minutes, from samples every 30 s; the oldest point first."""

    row = CurvePointSerializer
    query = CurveQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[CurvePoint]:
        group, now = selectors.group_head(names["cluster"], names["group"]), timezone.now()
        until = within_window(query["until"] or now, now)
        found = curves(group, until - timedelta(minutes=query["minutes"]), until)
        return RowsInMemory(found.points, lambda point: [point.at.isoformat()])
