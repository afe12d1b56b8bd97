"""What observing costs brokers and name servers: counted by the gateway, written once a minute."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from mqadmin.clusters.models import Cluster, RequestCost
from mqadmin.observing.gateway import Cost

# A server that was not asked for so long is not one of the cluster any more.
FORGOTTEN_AFTER = timedelta(days=1)


def write(cluster: Cluster, costs: Mapping[str, Cost], now: datetime) -> None:
    """Adds what was counted to the rows, and deletes those of servers that are asked no more."""
    with transaction.atomic():
        for address, cost in sorted(costs.items()):
            row, _ = RequestCost.objects.get_or_create(cluster=cluster, address=address, defaults={"updated_at": now})
            RequestCost.objects.filter(pk=row.pk).update(
                request_count=F("request_count") + cost.request_count,
                error_count=F("error_count") + cost.error_count,
                seconds=F("seconds") + cost.seconds,
                byte_count=F("byte_count") + cost.byte_count,
                updated_at=now,
            )
        RequestCost.objects.filter(cluster=cluster, updated_at__lt=now - FORGOTTEN_AFTER).delete()
