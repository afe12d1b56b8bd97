"""Which actions a page may offer: `{% load actions %}`. Not in live regions, which are shared between people."""

from __future__ import annotations

from django import template
from django.template.context import Context

from mqadmin.actions import runner

register = template.Library()


@register.simple_tag(takes_context=True)
def may(context: Context, action: str) -> bool:
    """Returns whether the viewer has the action's permission: `{% may "create_topic" as may_create %}`."""
    return runner.may(context["user"], action)
