"""Which actions a page may offer: `{% load actions %}`. Not in live regions, which are shared between people."""

from __future__ import annotations

from functools import partial

from django import template
from django.http import HttpRequest
from django.template.context import Context

from mqadmin.action_runs import runner
from mqadmin.clusters.models import Cluster
from mqadmin.people.caller import page_caller

register = template.Library()


@register.simple_tag(takes_context=True)
def may(context: Context, action: str, cluster: str = "") -> bool:
    """Returns whether the viewer may do it: `{% may "create_topic" here as may_create %}`; `here` is the cluster."""
    request = context["request"]
    return runner.may(page_caller(request), action, cluster, partial(_cluster_of_page, request))


def _cluster_of_page(request: HttpRequest, name: str) -> Cluster | None:
    """Looks a cluster up once for all actions of a page."""
    found: dict[str, Cluster | None] = request.__dict__.setdefault("found_clusters", {})
    if name not in found:
        found[name] = runner.find_cluster(name)
    return found[name]
