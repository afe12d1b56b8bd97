"""`…/deadletters/`: what fails in a cluster; a failure with its messages; one dead letter.

A failure is what messages died of: the same error in the same group, on messages that look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from mqadmin.actions import runner
from mqadmin.actions.caller import page_caller
from mqadmin.clusters import selectors
from mqadmin.console import sentences
from mqadmin.console.dead_letter_search import DeadLetterSearch, read_search
from mqadmin.console.live_page import live_page, or_404
from mqadmin.deadletters import selectors as dead_letter_selectors
from mqadmin.deadletters.bodies import body_of
from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription
from mqadmin.mending.originals import is_hidden
from mqadmin.mending.selectors import mended_view
from mqadmin.replays.selectors import of_dead_letter


@require_safe
def dead_letters(request: HttpRequest, cluster: str) -> HttpResponse:
    """Lists the failures of a cluster, or, with a word to look for, the dead letters that have it."""
    search, before = read_search(request, cluster), request.GET.get("before", "")
    shows = [Subscription(cluster, kinds=(ChangeKind.DEAD_LETTERS,))]
    return live_page(
        request,
        "dead_letters",
        lambda: _dead_letters(cluster, search, before),
        shows=shows,
        cluster=cluster,
        section="dead_letters",
        audience=search.audience,
    )


def _dead_letters(cluster: str, search: DeadLetterSearch, before: str) -> dict[str, Any]:
    head, now = selectors.cluster_head(cluster), timezone.now()
    totals = dead_letter_selectors.totals(head, now)
    shown = {"head": head, "now": now, "search": search, "totals": totals, "cluster": cluster}
    if search.finds_dead_letters:
        letters = dead_letter_selectors.dead_letters(head, search.dead_letters()).page(before)
        return shown | {"letters": letters.rows, "older_url": search.older(letters.older)}
    page = dead_letter_selectors.failures(head, search.failures()).page(before)
    return shown | {
        "failures": failure_lines(page.rows, now),
        "owners": dead_letter_selectors.owners(head),
        "older_url": search.older(page.older),
        "summary": "" if search.is_filtered else sentences.dead_letters_sentence(totals),
    }


def failure_lines(rows: Sequence[Failure], now: datetime) -> list[tuple[Failure, list[int]]]:
    """Returns each failure with how many died of it in each of the last hours."""
    trends = dead_letter_selectors.trends(rows, now)
    return [(row, trends[row.pk]) for row in rows]


@require_safe
def failure(request: HttpRequest, cluster: str, failure: int) -> HttpResponse:
    """Shows a failure with its dead letters; of one that is archived those that went with it."""
    search, before = read_search(request, cluster), request.GET.get("before", "")
    shows = [Subscription(cluster, kinds=(ChangeKind.DEAD_LETTERS,))]
    return live_page(
        request,
        "failure",
        lambda: _failure(cluster, failure, search, before),
        shows=shows,
        cluster=cluster,
        section="dead_letters",
        audience=search.audience,
    )


def _failure(cluster: str, failure_id: int, search: DeadLetterSearch, before: str) -> dict[str, Any]:
    head, now = selectors.cluster_head(cluster), timezone.now()
    found = dead_letter_selectors.failure(head, failure_id)
    if found.archived_at is not None:
        search = replace(search, is_archived=True)
    page = dead_letter_selectors.dead_letters(head, search.dead_letters(failure_id)).page(before)
    return {
        "head": head,
        "now": now,
        "cluster": cluster,
        "failure": found,
        "search": search,
        "trend": dead_letter_selectors.trends([found], now)[found.pk],
        "letters": page.rows,
        "older_url": search.older(page.older),
    }


@require_safe
def dead_letter(request: HttpRequest, cluster: str, message: int) -> HttpResponse:
    """Shows one dead letter with its body, which the broker is asked for where it was too large to be kept."""
    with or_404():
        head = selectors.cluster_head(cluster)
        found = dead_letter_selectors.dead_letter(head, message)
    caller = page_caller(request)
    role = caller.role_on(head)
    context = {
        "here": cluster,
        "cluster": cluster,
        "section": "dead_letters",
        "now": timezone.now(),
        "message": found,
        "body": body_of(found, role),
        "mended": mended_view(found, role),
        "may_mend": runner.may(caller, "mend_dead_letter", cluster) and not is_hidden(role, found),
        "properties": sorted(found.kept.properties.items()),
        "steps": _steps(found),
        "replays": of_dead_letter(found.pk),
    }
    response = render(request, "console/dead_letter.html", context)
    add_never_cache_headers(response)
    return response


def _steps(message: DeadLetter) -> list[tuple[datetime, str]]:
    """Returns what is known of its way, oldest first."""
    steps = [(message.born_at, sentences.born_sentence(message))] if message.born_at is not None else []
    return [*steps, (message.dead_at, sentences.died_sentence(message))]
