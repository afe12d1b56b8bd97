"""`/clusters/<cluster>/`: do its brokers answer, and does what must come at its time come?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.clusters.figures import SchedulerFacts
from mqadmin.clusters.models import Broker
from mqadmin.console import attention, sentences
from mqadmin.console.live_page import live_page
from mqadmin.live.subscriptions import Subscription

# deliveries later than this are not "at their time" any more
LATE_AFTER_MS = 1000


@dataclass(frozen=True, slots=True)
class SchedulerLine:
    broker: str
    status: str
    facts: SchedulerFacts


@require_safe
def cluster(request: HttpRequest, cluster: str) -> HttpResponse:
    return live_page(
        request, "cluster", lambda: _context(cluster), shows=[Subscription(cluster)], cluster=cluster, section="cluster"
    )


def _context(cluster: str) -> dict[str, Any]:
    page = selectors.cluster_page(cluster)
    groups = list(attention.group_lines(page.attention))
    schedulers = _schedulers(page.brokers)
    lines = [*attention.scheduler_lines(cluster, page.brokers), *groups]
    return {
        "now": page.now,
        "head": page.card.head,
        "card": page.card,
        "brokers": page.brokers,
        "schedulers": schedulers,
        "words": sentences.cluster_words(page.card, page.brokers),
        "attention": lines,
        "attention_rest": page.card.attention_count - len(groups),
        "is_scheduler_missing": any(line.status == "not_running" for line in schedulers),
    }


def _schedulers(brokers: tuple[Broker, ...]) -> list[SchedulerLine]:
    return [
        SchedulerLine(broker.name, _scheduler_status(broker.scheduler), broker.scheduler)
        for broker in brokers
        if broker.scheduler is not None
    ]


def _scheduler_status(facts: SchedulerFacts) -> str:
    if not facts.driver:
        return "not_running"
    return "late" if facts.late_ms is not None and facts.late_ms > LATE_AFTER_MS else "ok"
