"""`…/rebalances` of a cluster and of a group: who came and went, and which queues moved; the latest first. How restless
a group is, and when a cluster was not sampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.listing import ListResource, described
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.groups import ChurnSerializer, GapSerializer, RebalanceSerializer
from mqadmin.clusters import selectors
from mqadmin.lag.hot_window import Gap
from mqadmin.rebalances import selectors as rebalance_selectors
from mqadmin.rebalances.selectors import RebalanceRow


@dataclass(frozen=True, slots=True)
class RebalanceRows:
    """The events of a cluster, or of one group of it."""

    cluster_id: int
    group: str = ""

    def after(self, position: Sequence[Any] | None, size: int) -> list[RebalanceRow]:
        before = position[0] if position else ""
        if self.group:
            page = rebalance_selectors.of_group(self.cluster_id, self.group, before=before, size=size)
        else:
            page = rebalance_selectors.of_cluster(self.cluster_id, before=before, size=size)
        return list(page.rows)

    def position(self, row: RebalanceRow) -> list[Any]:
        return [rebalance_selectors.cursor_of(row)]

    def total_count(self) -> None:
        return None


@described("list_cluster_rebalances", "List the rebalances of a cluster")
class ClusterRebalances(ListResource):
    """Rebalances of all groups of a cluster, the latest first."""

    row = RebalanceSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[RebalanceRow]:
        return RebalanceRows(selectors.cluster_head(names["cluster"]).pk)


@described("list_group_rebalances", "List the rebalances of a group")
class GroupRebalances(ListResource):
    """Rebalances of a group, the latest first."""

    row = RebalanceSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[RebalanceRow]:
        group = selectors.group_head(names["cluster"], names["group"])
        return RebalanceRows(group.cluster_id, group.name)


class GroupChurn(Resource):
    """How restless a group is: its rebalances of the last hour and day, weighted."""

    @extend_schema(operation_id="get_group_churn", summary="Get the churn of a group", responses=ChurnSerializer)
    def get(self, request: Request, cluster: str, group: str) -> Response:
        found = rebalance_selectors.churn_of(selectors.group_head(cluster, group), timezone.now())
        return Response(ChurnSerializer(found).data)


@described("list_cluster_gaps", "List when a cluster was not sampled")
class ClusterGaps(ListResource):
    """Times of the last two days in which a cluster was not sampled, or not all of it; the latest first."""

    row = GapSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Gap]:
        found = rebalance_selectors.recent_gaps(selectors.cluster_head(names["cluster"]), timezone.now())
        return RowsInMemory(found, lambda gap: [-gap.until_s, gap.at_s])
