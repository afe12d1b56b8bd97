"""`…/rebalances/`: who moved?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.console.known import or_404
from mqadmin.console.live_page import live_page
from mqadmin.console.timeline import timeline
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription
from mqadmin.rebalances import selectors as rebalance_selectors


@require_safe
def rebalances(request: HttpRequest, cluster: str) -> HttpResponse:
    with or_404():
        head = selectors.cluster_head(cluster)
    events = rebalance_selectors.of_cluster(head.id, before=request.GET.get("before", ""))
    context = {"head": head, "events": events, "entries": timeline(events.rows), "now": timezone.now()}
    shows = [Subscription(cluster, kinds=(ChangeKind.REBALANCES,))]
    return live_page(request, "rebalances", context, shows=shows, cluster=cluster, section="rebalances")
