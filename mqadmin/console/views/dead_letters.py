"""`…/deadletters/`: what fails in a cluster; a failure with its messages; one dead letter.

A failure is what messages died of: the same error in the same group, on messages that look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from mqadmin.action_runs import runner
from mqadmin.clusters import selectors
from mqadmin.clusters.models import Cluster
from mqadmin.console import sentences
from mqadmin.console.dead_letter_search import DeadLetterSearch, read_search
from mqadmin.console.live_page import live_page, or_404
from mqadmin.console.timeline import event_text
from mqadmin.console.views.audit import PERMISSION as AUDIT_PERMISSION
from mqadmin.console.views.audit import action_words
from mqadmin.deadletters import selectors as dead_letter_selectors
from mqadmin.deadletters.beginning import Beginning, beginning_of
from mqadmin.deadletters.bodies import body_of
from mqadmin.deadletters.grouping import grouped, of_one_group
from mqadmin.deadletters.indexing import hour_of
from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.deadletters.retention import HOURS_KEPT_FOR
from mqadmin.deadletters.selectors import TREND_HOURS, Totals
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription
from mqadmin.mending.originals import is_hidden
from mqadmin.mending.selectors import mended_view
from mqadmin.people import access
from mqadmin.people.caller import page_caller
from mqadmin.replays.selectors import of_dead_letter
from mqadmin.retries.selectors import attempts_of, first_failed_at

# Groups of a page of a search whose dead letters are offered for a replay; others are found by their name.
OFFERED_GROUPS_MAX = 10

GROUPING_WORDS = (
    ("", gettext_lazy("failure")),
    ("group", gettext_lazy("group")),
    ("topic", gettext_lazy("first sent to")),
    ("tag", gettext_lazy("tag")),
    ("attempts", gettext_lazy("attempts")),
    ("class", gettext_lazy("exception")),
    ("shape", gettext_lazy("shape of the body")),
)


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
    shown = {
        "head": head,
        "now": now,
        "search": search,
        "totals": totals,
        "cluster": cluster,
        "export_query": search.export_query(),
    }
    if search.finds_dead_letters:
        letters = dead_letter_selectors.dead_letters(head, search.dead_letters()).page(before)
        groups = sorted({row.group_name for row in letters.rows})
        return shown | {
            "letters": letters.rows,
            "older_url": search.older(letters.older),
            "is_cut": letters.is_cut,
            # Of a group, since a replay and its attempts are a group's.
            "found_groups": groups[:OFFERED_GROUPS_MAX],
            "replay_query": search.replay_query(),
            "archive_query": search.selection_query(),
        }
    shown |= failures_shown(head, search, before, totals, now)
    return shown | {
        "owners": dead_letter_selectors.owners(head),
        "summary": "" if search.is_filtered else sentences.dead_letters_sentence(totals),
    }


def failures_shown(
    cluster: Cluster, search: DeadLetterSearch, before: str, totals: Totals, now: datetime, group: str = ""
) -> dict[str, Any]:
    """Returns a page of failures, those of one group of them, or the groups, as the address asks."""
    wanted = search.failures(group)
    shown = {
        "groupings": [(by, search.grouped_by(by), word) for by, word in GROUPING_WORDS if by != "group" or not group]
    }
    if search.by and search.value is None:
        found = grouped(cluster, wanted, search.by)
        groups = [(one, search.of_value(one.value), share_text(one.share)) for one in found]
        return shown | {"groups": groups, "grouping_word": dict(GROUPING_WORDS)[search.by]}
    rows = dead_letter_selectors.failures(cluster, wanted)
    if search.by and search.value is not None:
        rows = of_one_group(rows, search.by, search.value)
    page = rows.page(before)
    return shown | {
        "failures": failure_lines(page.rows, now, totals.dead_count),
        "older_url": search.older(page.older),
    }


def failure_lines(rows: Sequence[Failure], now: datetime, dead_count: int) -> list[tuple[Failure, list[int], str]]:
    """Returns each failure with how many died of it in each of the last hours, and its share of all that are shown."""
    trends = dead_letter_selectors.trends(rows, now)
    return [(row, trends[row.pk], share_text(row.dead_count / dead_count) if dead_count else "") for row in rows]


def share_text(share: float) -> str:
    """Returns a share as it is read: what is there is never 0 %."""
    return "< 1 %" if share < 0.01 else f"{min(share, 1):.0%}".replace("%", " %")


@require_safe
def failure(request: HttpRequest, cluster: str, failure: int) -> HttpResponse:
    """Shows a failure with its dead letters; of one that is archived those that went with it."""
    search, before = read_search(request, cluster), request.GET.get("before", "")
    shows = [Subscription(cluster, kinds=(ChangeKind.DEAD_LETTERS,))]
    return live_page(
        request,
        "failure",
        lambda: _failure(cluster, failure, search, before, reads_audit=_reads_audit(request, cluster)),
        shows=shows,
        cluster=cluster,
        section="dead_letters",
        audience=search.audience,
        permissions=[AUDIT_PERMISSION],
    )


def _failure(
    cluster: str, failure_id: int, search: DeadLetterSearch, before: str, *, reads_audit: bool
) -> dict[str, Any]:
    head, now = selectors.cluster_head(cluster), timezone.now()
    found = dead_letter_selectors.failure(head, failure_id)
    if found.archived_at is not None:
        search = replace(search, is_archived=True)
    page = dead_letter_selectors.dead_letters(head, search.dead_letters(failure_id)).page(before)
    beginning = beginning_of(head, found, first_failed_at(found), now, reads_audit=reads_audit)
    of_all = dead_letter_selectors.totals(head, now).dead_count
    return {
        "head": head,
        "now": now,
        "cluster": cluster,
        "failure": found,
        "search": search,
        "share": share_text(found.dead_count / of_all) if of_all and found.archived_at is None else "",
        "trend": dead_letter_selectors.trends([found], now)[found.pk],
        "first_trend": _first_trend(found, now),
        "beginning": beginning,
        "changes": change_lines(beginning, found),
        "letters": page.rows,
        "export_query": search.export_query(failure=failure_id),
        "replay_query": search.replay_query(failure=failure_id),
        "archive_query": search.selection_query(failure=failure_id),
        "older_url": search.older(page.older),
        "is_cut": page.is_cut,
    }


def _reads_audit(request: HttpRequest, cluster: str) -> bool:
    return access.may(request.user, AUDIT_PERMISSION, Cluster.objects.filter(name=cluster).first())


def _first_trend(failure: Failure, now: datetime) -> list[int]:
    """Returns how many died in each of the first hours; none where these are the last ones still, or not kept."""
    if hour_of(failure.first_dead_at) < now - HOURS_KEPT_FOR:
        return []
    ends_at = failure.first_dead_at + timedelta(hours=TREND_HOURS - 1)
    return dead_letter_selectors.trends([failure], ends_at)[failure.pk] if ends_at < now else []


def change_lines(beginning: Beginning, failure: Failure) -> list[tuple[datetime, str, str]]:
    """Returns what happened when a failure began, oldest first: when, what, and the address of more.

    Among them, without an address, when the failure itself began; nothing where that would stand there alone.
    """
    lines = [
        (
            event.at,
            " ".join(part for part in (event.client_id, event_text(event)) if part),
            reverse("group_rebalances", args=[beginning.cluster, event.group_name]),
        )
        for event in beginning.rebalances
    ]
    lines += [
        (
            entry.at,
            f"{action_words(entry.action)}: {entry.subject} ({entry.actor})",
            reverse("audit_entry", args=[entry.number]),
        )
        for entry in beginning.actions
    ]
    return sorted([*lines, *_own_lines(beginning, failure)]) if lines else []


def _own_lines(beginning: Beginning, failure: Failure) -> list[tuple[datetime, str, str]]:
    first_died = (failure.first_dead_at, gettext("The first message died."), "")
    if beginning.began_at == failure.first_dead_at:
        return [first_died]
    failed = (beginning.began_at, gettext("The first attempt failed."), "")
    return [failed, first_died] if failure.first_dead_at <= beginning.until else [failed]


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
        "is_on_broker": dead_letter_selectors.is_on_broker(found),
    }
    response = render(request, "console/dead_letter.html", context)
    add_never_cache_headers(response)
    return response


def _steps(message: DeadLetter) -> list[tuple[datetime, str]]:
    """Returns what is known of its way, oldest first."""
    steps = [(message.born_at, sentences.born_sentence(message))] if message.born_at is not None else []
    failed = [(attempt.failed_at, sentences.attempt_sentence(attempt)) for attempt in attempts_of(message)]
    return [*steps, *failed, (message.dead_at, sentences.died_sentence(message))]
