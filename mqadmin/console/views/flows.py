"""`…/flows/` of a cluster and `…/topics/<topic>/flow/`: where messages go, and where they get stuck."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from mqadmin.console import flow_drawing, sentences
from mqadmin.console.listing import FILTER_CHARS_MAX
from mqadmin.console.live_page import live_page
from mqadmin.console.views.topics import topic_tabs
from mqadmin.flows.selectors import FlowMap, cluster_flows, topic_flows
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription

KINDS = (ChangeKind.TOPICS, ChangeKind.GROUPS)


@require_safe
def flows(request: HttpRequest, cluster: str) -> HttpResponse:
    text = request.GET.get("q", "").strip().replace("\0", "")[:FILTER_CHARS_MAX]
    context = {"text": text, "topic": ""}
    return _page(request, cluster, lambda: cluster_flows(cluster, text), context, "flows")


@require_safe
def topic_flow(request: HttpRequest, cluster: str, topic: str) -> HttpResponse:
    context = {"text": "", "topic": topic, "tab": "topic_flow", "tabs": topic_tabs(cluster, topic)}
    return _page(request, cluster, lambda: topic_flows(cluster, topic), context, "topics")


def _page(
    request: HttpRequest, cluster: str, read: Callable[[], FlowMap], context: dict[str, Any], section: str
) -> HttpResponse:
    def whole() -> dict[str, Any]:
        found = read()
        return {
            **context,
            "flows": found,
            "now": found.now,
            "cluster_name": cluster,
            "drawing": flow_drawing.draw(found),
            "summary": sentences.flows_sentence(found),
        }

    shows = [Subscription(cluster, kinds=KINDS)]
    return live_page(request, "flows", whole, shows=shows, cluster=cluster, section=section)
