"""`…/brokers/<broker>/`: one broker: address, version, role, and what it tells of its run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.clusters.figures import Figure
from mqadmin.clusters.models import Broker
from mqadmin.clusters.versions import version_name
from mqadmin.console.live_page import live_page
from mqadmin.live.subscriptions import Subscription
from mqadmin.metrics import selectors as metrics
from mqadmin.metrics.models import BrokerRuntime

# Of RocketMQ's figures, those that say most, in the order in which they are shown; the others follow by name.
FIRST_FIGURES = (
    "runtime",
    "commitLogDiskRatio",
    "consumeQueueDiskRatio",
    "commitLogDirCapacity",
    "earliestMessageTimeStamp",
    "remainHowManyDataToFlush",
    "dispatchBehindBytes",
)


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """A master or slave of that name. `figures` are RocketMQ's names and values; none where it told nothing yet."""

    broker: Broker
    version: str
    put_per_s: Figure
    get_per_s: Figure
    seen_at: datetime | None
    figures: tuple[tuple[str, str], ...]


@require_safe
def broker(request: HttpRequest, cluster: str, broker: str) -> HttpResponse:
    return live_page(
        request,
        "broker",
        lambda: _context(cluster, broker),
        shows=[Subscription(cluster)],
        cluster=cluster,
        section="cluster",
    )


def _context(cluster: str, broker: str) -> dict[str, Any]:
    page = selectors.broker_page(cluster, broker)
    runtimes = metrics.runtimes(page.brokers)
    return {
        "page": page,
        "now": page.now,
        "name": broker,
        "lines": [_line(one, runtimes.get(one.pk)) for one in page.brokers],
    }


def _line(broker: Broker, runtime: BrokerRuntime | None) -> BrokerLine:
    figures = runtime.figures if runtime is not None else {}
    names = [*(name for name in FIRST_FIGURES if name in figures), *sorted(set(figures) - set(FIRST_FIGURES))]
    seen_at = runtime.seen_at if runtime is not None else None
    return BrokerLine(
        broker=broker,
        version=version_name(broker.version) if broker.version is not None else figures.get("brokerVersionDesc", ""),
        put_per_s=Figure(runtime.put_per_s if runtime is not None else None, seen_at),
        get_per_s=Figure(runtime.get_per_s if runtime is not None else None, seen_at),
        seen_at=seen_at,
        figures=tuple((name, str(figures[name])) for name in names),
    )
