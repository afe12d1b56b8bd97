"""`/outbox/`: messages that were written with a database transaction, and what became of them."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from consumer.outbox.models import OutboxState
from consumer.outbox.settings import outbox_settings
from mqadmin.console import sentences
from mqadmin.console.figures import count_text, round_duration_text
from mqadmin.console.tabs import Tab
from mqadmin.hosting import outbox as selectors

PERMISSION = "mq_consumer.view_outboxmessage"


@require_safe
def outbox(request: HttpRequest) -> HttpResponse:
    """Lists the messages of one state, those that wait by default, in one database."""
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
    databases = selectors.databases()
    asked_database, asked_state = request.GET.get("database", ""), request.GET.get("state", "")
    database = asked_database if asked_database in databases else databases[0]
    state = OutboxState(asked_state) if asked_state in OutboxState.values else selectors.STATES[0]
    rows, older = selectors.OutboxRows(database, state).page(request.GET.get("before", ""))
    counts = selectors.counts(database)
    now, settings = timezone.now(), outbox_settings()
    context = {
        "section": "outbox",
        "now": now,
        "summary": sentences.outbox_sentence(counts, now),
        "counts": counts,
        "state": state.value,
        "tabs": _tabs(database, counts),
        "tab": state.value,
        "databases": databases if len(databases) > 1 else (),
        "database": database,
        "rows": rows,
        "given_up_after": round_duration_text(int(settings.give_up_after_s)),
        "sent_kept_for": round_duration_text(int(settings.keep_sent_s)),
        "older_url": f"?{urlencode(_query(database, state) | {'before': older})}" if older else "",
    }
    response = render(request, "console/outbox.html", context)
    add_never_cache_headers(response)
    return response


def _query(database: str, state: OutboxState) -> dict[str, Any]:
    return {"state": state.value} | ({"database": database} if database != selectors.databases()[0] else {})


def _tabs(database: str, counts: selectors.OutboxCounts) -> list[Tab]:
    words = {
        OutboxState.PENDING: (gettext("Waiting"), counts.waiting),
        OutboxState.FAILED: (gettext("Given up"), counts.given_up),
        OutboxState.SENT: (gettext("Sent"), counts.sent),
    }
    return [
        Tab(state.value, f"?{urlencode(_query(database, state))}", words[state][0], _bounded(words[state][1]))
        for state in selectors.STATES
    ]


def _bounded(count: int) -> str:
    return f"{count_text(count)}+" if count >= selectors.COUNT_MAX else count_text(count)
