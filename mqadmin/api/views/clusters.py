"""`/clusters` and `/clusters/<cluster>`: clusters, their brokers and the last hour of their lag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.access import clusters_seen
from mqadmin.api.listing import ListQuery, ListResource, described, filter_field
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.clusters import BrokerSerializer, ClusterSerializer
from mqadmin.api.serializers.groups import LagPointSerializer
from mqadmin.clusters import selectors
from mqadmin.clusters.models import Broker
from mqadmin.clusters.selectors import ClusterCard
from mqadmin.lag.selectors import LagPoint, lag_points
from mqadmin.live.events import live_group


class ClustersQuery(ListQuery):
    q = filter_field("name")


@described("list_clusters", "List clusters")
class Clusters(ListResource):
    """Clusters by name."""

    row = ClusterSerializer
    query = ClustersQuery

    def live_groups(self, **names: str) -> Sequence[str]:
        return [live_group(name) for name in clusters_seen(self.request).values_list("name", flat=True)]

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[ClusterCard]:
        cards = selectors.overview(clusters_seen(self.request)).clusters
        found = [card for card in cards if query["q"].casefold() in card.head.name.casefold()]
        return RowsInMemory(found, lambda card: [card.head.name])


class ClusterDetail(Resource):
    """A cluster with the sums over what is in it."""

    @extend_schema(operation_id="get_cluster", summary="Get a cluster", responses=ClusterSerializer)
    def get(self, request: Request, cluster: str) -> Response:
        return self.when_changed(
            request,
            {"cluster": cluster},
            lambda: Response(ClusterSerializer(selectors.cluster_page(cluster).card).data),
        )


@described("list_brokers", "List brokers")
class Brokers(ListResource):
    """Brokers of a cluster by name."""

    row = BrokerSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Broker]:
        page = selectors.cluster_page(names["cluster"])
        return RowsInMemory(page.brokers, lambda broker: [broker.name, broker.broker_id])


@described("get_cluster_lag", "Get the lag of a cluster")
class ClusterLag(ListResource):
    """The last hour of the sum of all groups' lag: the moments at which it changed, the oldest first."""

    row = LagPointSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[LagPoint]:
        head = selectors.cluster_head(names["cluster"])
        return lag_rows(head.lag_history)


def lag_rows(packed: bytes | memoryview) -> Rows[LagPoint]:
    """Returns the steps of a lag history as rows of a list."""
    return RowsInMemory(lag_points(packed, timezone.now()), lambda point: [point.at.isoformat()])
