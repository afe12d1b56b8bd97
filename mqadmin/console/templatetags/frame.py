"""Template tags of the page layout: navigation, breadcrumbs, theme, language, live regions. `{% load frame %}`."""

from __future__ import annotations

from typing import Any

from django import template
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.template.context import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext

from mqadmin.clusters import selectors
from mqadmin.console.views.theme import theme_of
from mqadmin.people import access

register = template.Library()


@register.simple_tag(takes_context=True)
def theme_attribute(context: Context) -> SafeString:
    """Returns ` data-theme="dark"` when a theme is chosen; "" where the page follows the system's."""
    request = context.get("request")
    chosen = theme_of(request) if request else ""
    return format_html(' data-theme="{}"', chosen) if chosen else SafeString("")


@register.inclusion_tag("components/theme_choice.html", takes_context=True)
def theme_choice(context: Context) -> dict[str, Any]:
    request = context["request"]
    return {
        "request": request,
        "csrf_token": context["csrf_token"],
        "theme": theme_of(request),
        "themes": (("", gettext("System")), ("light", gettext("Light")), ("dark", gettext("Dark"))),
    }


@register.inclusion_tag("components/language_choice.html", takes_context=True)
def language_choice(context: Context) -> dict[str, Any]:
    return {
        "request": context["request"],
        "csrf_token": context["csrf_token"],
        "language": get_language(),
        "languages": settings.LANGUAGES,
    }


@register.inclusion_tag("components/navigation.html", takes_context=True)
def navigation(context: Context) -> dict[str, Any]:
    """Lists all clusters, the sections of the one that the page belongs to, and the pages about the console itself."""
    user = context.get("user") or AnonymousUser()
    return {
        "console_sections": [
            (key, word) for key, word, permission in _console_sections() if access.may_anywhere(user, permission)
        ],
        "names": selectors.cluster_names(access.visible_clusters(user)),
        "here": context.get("here", ""),
        "section": context.get("section", ""),
        "sections": (
            ("groups", gettext("Groups")),
            ("topics", gettext("Topics")),
            ("flows", gettext("Flow map")),
            ("dead_letters", gettext("Dead letters")),
            ("replays", gettext("Replays")),
            ("rebalances", gettext("Rebalances")),
            ("reports", gettext("Reports")),
        ),
    }


@register.simple_tag
def breadcrumb(word: str, url_name: str, *names: str) -> SafeString:
    """Returns one linked breadcrumb; a long name is truncated, and whole on hover."""
    return format_html(
        '<li><a class="truncate" href="{}" title="{}">{}</a></li>', reverse(url_name, args=names), word, word
    )


@register.simple_tag(takes_context=True)
def live_region(context: Context, name: str) -> SafeString:
    """Returns the attributes of the region that htmx fetches from the page's own address at the event "live"."""
    return format_html(
        'id="{}" class="region" hx-get="{}" hx-trigger="live from:body" hx-swap="outerHTML" hx-sync="this:replace"',
        name,
        context["path"],
    )


def _console_sections() -> tuple[tuple[str, str, str], ...]:
    """Returns the pages about the console itself: the name of each in the addresses, its word, and its permission."""
    return (
        ("jobs", gettext("Jobs"), "django_celery_beat.view_periodictask"),
        ("workers", gettext("Workers"), "mq_consumer.view_loopsworker"),
        ("outbox", gettext("Outbox"), "mq_consumer.view_outboxmessage"),
        ("people", gettext("People"), "auth.view_user"),
        ("audit", gettext("Audit"), "mq_audit.view_auditentry"),
    )
