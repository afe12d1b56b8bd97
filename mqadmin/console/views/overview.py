"""`/`: the overview of all clusters, and what needs attention on them."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from mqadmin.alerts import selectors as alerts
from mqadmin.clusters import selectors
from mqadmin.clusters.models import Cluster, ClusterState
from mqadmin.clusters.selectors import Overview
from mqadmin.console import attention, sentences
from mqadmin.console.live_page import live_page
from mqadmin.deadletter_rules import selectors as rule_selectors
from mqadmin.live.subscriptions import Subscription
from mqadmin.people import access
from mqadmin.subscriptions import selectors as subscriptions


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    seen = access.visible_clusters(request.user)
    names = selectors.cluster_names(seen)
    return live_page(
        request,
        "overview",
        lambda: _context(seen),
        shows=[Subscription(name) for name in names],
        section="overview",
        # Who sees all clusters shares the region with all who do, others with those who see the same.
        audience=() if access.sees_all(request.user) else ("some", *names),
    )


def _context(seen: QuerySet[Cluster]) -> dict[str, Any]:
    found = selectors.overview(seen)
    clusters = list(attention.cluster_lines(card.head for card in found.clusters))
    schedulers = [line for card in found.clusters for line in attention.scheduler_lines(card.head.name, card.brokers)]
    groups = list(attention.group_lines(found.attention))
    raised = list(attention.raised_lines(rule_selectors.raised(card.head for card in found.clusters)))
    conflicts = list(attention.conflict_lines(subscriptions.conflicts(seen)))
    firing = list(attention.alert_lines(alerts.firing(seen)))
    attention_count = len(clusters) + len(schedulers) + len(raised) + found.attention_count
    attention_count += subscriptions.conflict_count(seen) + alerts.firing_count(seen)
    empty = _empty_cluster(found)
    headline, summary = sentences.headline(found, attention_count), sentences.overview_sentence(found)
    if empty is not None:
        headline, summary = sentences.first_steps_headline(empty), sentences.first_steps_sentence()
    return {
        "overview": found,
        "now": found.now,
        "headline": headline,
        "summary": "" if attention_count else summary,
        "attention": [*firing, *clusters, *schedulers, *raised, *groups, *conflicts],
        "attention_rest": found.attention_count - len(groups),
        "first_steps": empty,
    }


def _empty_cluster(found: Overview) -> Cluster | None:
    """Returns the one cluster of a fresh install, as long as it has neither topics nor groups; else None."""
    if len(found.clusters) != 1:
        return None
    card = found.clusters[0]
    is_empty = card.topic_count == 0 and card.group_count == 0
    return card.head if is_empty and card.head.state == ClusterState.REACHABLE else None
