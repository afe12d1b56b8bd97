"""`/clusters/<cluster>/`: a cluster's brokers and schedulers, and its groups that need attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.clusters.figures import DueKind, SchedulerSummary
from mqadmin.clusters.models import Broker
from mqadmin.console import attention, sentences
from mqadmin.console.live_page import live_page
from mqadmin.deadletter_rules import selectors as rule_selectors
from mqadmin.live.subscriptions import Subscription
from mqadmin.observing.polling_cycle import POLL_INTERVAL_S
from mqadmin.people import access

# What was done that much after it was due is marked as late.
LATE_AFTER_MS = 1000


@dataclass(frozen=True, slots=True)
class SchedulerLine:
    """A broker's scheduler. `status` names a status mark."""

    broker: str
    status: str
    scheduler: SchedulerSummary


@dataclass(frozen=True, slots=True)
class DueKindLine:
    """What a broker's scheduler does of one kind. `name` in words, `status` names a status mark."""

    broker: str
    name: str
    status: str
    due: DueKind


@require_safe
def cluster(request: HttpRequest, cluster: str) -> HttpResponse:
    return live_page(
        request, "cluster", lambda: _context(cluster), shows=[Subscription(cluster)], cluster=cluster, section="cluster"
    )


def _context(cluster: str) -> dict[str, Any]:
    page = selectors.cluster_page(cluster)
    groups = list(attention.group_lines(page.attention))
    schedulers = _schedulers(page.brokers)
    raised = attention.raised_lines(rule_selectors.raised([page.card.head]))
    lines = [*attention.scheduler_lines(cluster, page.brokers), *raised, *groups]
    return {
        "now": page.now,
        "head": page.card.head,
        "card": page.card,
        "is_read_only": access.is_read_only(page.card.head),
        "brokers": page.brokers,
        "schedulers": schedulers,
        "due_kinds": [line for scheduler in schedulers for line in _due_kinds(scheduler)],
        "summary": sentences.cluster_sentence(page.card, page.brokers),
        "polling": sentences.polling_sentence(page.card.head, POLL_INTERVAL_S),
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


def _scheduler_status(scheduler: SchedulerSummary) -> str:
    return _lateness(scheduler.late_ms) if scheduler.driver else "not_running"


def _due_kinds(line: SchedulerLine) -> list[DueKindLine]:
    return [
        DueKindLine(line.broker, _due_kind_name(due.kind), _lateness(due.late_ms), due) for due in line.scheduler.kinds
    ]


def _due_kind_name(kind: str) -> str:
    names = {
        "delay": gettext("delay levels and retries"),
        "timer": gettext("timed messages"),
        "transaction": gettext("transaction checks"),
        "retention": gettext("deletion of old messages"),
    }
    return names.get(kind, kind)


def _lateness(late_ms: int | None) -> str:
    return "late" if late_ms is not None and late_ms > LATE_AFTER_MS else "ok"
