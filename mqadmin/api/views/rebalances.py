"""`…/rebalances` of a cluster and of a group: who came and went, and which queues moved; the latest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqadmin.api.listing import ListResource, described
from mqadmin.api.rows import Rows
from mqadmin.api.serializers.groups import RebalanceSerializer
from mqadmin.clusters import selectors
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
