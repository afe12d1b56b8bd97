"""Which actions a page may offer: `{% load actions %}`. Not in live regions, which are shared between people."""

from __future__ import annotations

from django import template
from django.template.context import Context

from mqadmin.actions import runner
from mqadmin.actions.caller import page_caller

register = template.Library()


@register.simple_tag(takes_context=True)
def may(context: Context, action: str, cluster: str = "") -> bool:
    """Returns whether the viewer may do it: `{% may "create_topic" here as may_create %}`; `here` is the cluster."""
    return runner.may(page_caller(context["request"]), action, cluster)
