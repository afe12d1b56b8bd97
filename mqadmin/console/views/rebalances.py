"""`…/rebalances/`: the rebalances of all groups of a cluster."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.console.live_page import live_page
from mqadmin.console.timeline import churn_text, timeline
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription
from mqadmin.rebalances import selectors as rebalance_selectors


@require_safe
def rebalances(request: HttpRequest, cluster: str) -> HttpResponse:
    before = request.GET.get("before", "")
    shows = [Subscription(cluster, kinds=(ChangeKind.REBALANCES,))]
    return live_page(
        request, "rebalances", lambda: _context(cluster, before), shows=shows, cluster=cluster, section="rebalances"
    )


def _context(cluster: str, before: str) -> dict[str, Any]:
    head, now = selectors.cluster_head(cluster), timezone.now()
    events = rebalance_selectors.of_cluster(head.pk, before=before)
    gaps = rebalance_selectors.gaps(head, events, now, before=before)
    restless = rebalance_selectors.restless_groups(head, now)
    return {
        "head": head,
        "events": events,
        "entries": timeline(events.rows, gaps),
        "restless": [(name, one.restlessness, churn_text(one)) for name, one in restless],
        "now": now,
    }
