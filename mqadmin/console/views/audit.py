"""`/audit/`: who changed what; `/audit/<number>/`: one entry; `/audit/export.jsonl`: all that match."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.dateparse import parse_date
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from mqadmin.action_runs import runs
from mqadmin.actions import registry
from mqadmin.audit import chain, selectors
from mqadmin.audit.selectors import AuditFilter
from mqadmin.clusters.selectors import cluster_names
from mqadmin.console.action_values import item_line
from mqadmin.console.listing import FILTER_CHARS_MAX
from mqadmin.console.live_page import or_404
from mqadmin.people import access
from mqadmin.people.caller import Way

PERMISSION = "mq_audit.view_auditentry"
# Names of the filters in the address that are texts.
_WORDS = ("person", "action", "cluster", "subject", "outcome", "way")
_NUMBER_DIGITS_MAX = 15
WAYS = (
    (Way.PAGE, gettext_lazy("page")),
    (Way.REST, "REST"),
    (Way.CELERY, "Celery"),
    (Way.COMMAND, gettext_lazy("command line")),
)


@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    """Lists the entries that match the filters of the address, newest first."""
    wanted = _filter(request)
    found = selectors.page(wanted, before=_number(request.GET, "before"), after=_number(request.GET, "after"))
    context = {
        "section": "audit",
        "now": timezone.now(),
        "rows": [(entry, action_words(entry.action), way_words(entry.way)) for entry in found.entries],
        "query": request.GET,
        "actions": [("", gettext("any action")), *((name, action_words(name)) for name in registry.ACTIONS)],
        "clusters": [
            ("", gettext("any cluster")),
            *((name, name) for name in cluster_names(access.visible_clusters(request.user))),
        ],
        "outcomes": [("", gettext("any outcome")), *selectors.outcomes()],
        "ways": [("", gettext("any way")), *WAYS],
        "is_filtered": wanted != AuditFilter(clusters=wanted.clusters),
        "filters": _with(request.GET, before=None, after=None),
        "newer_url": _with(request.GET, before=None, after=found.newer) if found.newer else "",
        "older_url": _with(request.GET, after=None, before=found.older) if found.older else "",
    }
    return _page(request, "console/audit.html", context)


@require_safe
def audit_entry(request: HttpRequest, number: int) -> HttpResponse:
    """Shows an entry with the values before and after, item by item, and its place in the chain."""
    clusters = _readable(request)
    with or_404():
        entry = selectors.entry(number, clusters)
    result = runs.result_of(entry)
    context = {
        "section": "audit",
        "now": timezone.now(),
        "entry": entry,
        "action": action_words(entry.action),
        "way": way_words(entry.way),
        # None: nothing was said, and it stayed as it was.
        "arguments": [(name, _text(value)) for name, value in entry.arguments.items() if value is not None],
        "items": [(one, item_line(entry.subject, one.item, one.before, one.after)) for one in result.items],
    }
    return _page(request, "console/audit_entry.html", context)


@require_safe
def audit_export(request: HttpRequest) -> StreamingHttpResponse:
    """Streams the entries that match the filters of the address as JSON Lines, oldest first."""
    lines: Iterator[str] = chain.lines(selectors.export(_filter(request)))
    name = f"audit-{timezone.now():%Y%m%d-%H%M%S}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines, content_type="application/jsonl; charset=utf-8", headers=headers)


def action_words(name: str) -> str:
    """Returns the words of an action; its name where an older version had it."""
    action = registry.ACTIONS.get(name)
    return name if action is None else str(action.title)


def way_words(name: str) -> str:
    """Returns the words of a way in; its name where an older version had it."""
    return str({str(way): word for way, word in WAYS}.get(name, name))


def _readable(request: HttpRequest) -> list[str] | None:
    """Returns the clusters whose entries the person may read, None for all. Raises PermissionDenied for none."""
    clusters = access.clusters_where(request.user, PERMISSION)
    if clusters == []:
        raise PermissionDenied
    return clusters


def _filter(request: HttpRequest) -> AuditFilter:
    query = request.GET
    words = {name: query.get(name, "").strip()[:FILTER_CHARS_MAX].replace("\0", "") for name in _WORDS}
    until = _day(query, "until")
    return AuditFilter(
        **words,
        since=_day(query, "since"),
        # The day itself belongs to what is asked for.
        until=until + timedelta(days=1) if until else None,
        batch=_uuid(query.get("batch", "")),
        clusters=_readable(request),
    )


def _day(query: QueryDict, name: str) -> datetime | None:
    """Returns the first moment (UTC) of a day in the address; None where there is none, or no day."""
    try:
        day = parse_date(query.get(name, ""))
    except ValueError:
        return None
    return None if day is None or day.year in (1, 9999) else datetime.combine(day, time(), UTC)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def _number(query: QueryDict, name: str) -> int | None:
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS_MAX else None


def _with(query: QueryDict, **changes: int | None) -> str:
    copy = query.copy()
    for name, value in changes.items():
        copy.pop(name, None)
        if value is not None:
            copy[name] = str(value)
    return f"?{copy.urlencode()}"


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    response = render(request, template, context)
    add_never_cache_headers(response)
    return response
