"""`…/deadletters/rules/`: the rules of a cluster, with what each did last."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.console.live_page import or_404
from mqadmin.deadletter_rules import selectors as rule_selectors


@require_safe
def dead_letter_rules(request: HttpRequest, cluster: str) -> HttpResponse:
    with or_404():
        head = selectors.cluster_head(cluster)
    context = {
        "here": cluster,
        "cluster": cluster,
        "section": "dead_letters",
        "now": timezone.now(),
        "rows": rule_selectors.rules(head),
    }
    response = render(request, "console/dead_letter_rules.html", context)
    add_never_cache_headers(response)
    return response
