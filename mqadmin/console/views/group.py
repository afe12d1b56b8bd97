"""`…/groups/<group>/` and its tabs: health, members, subscriptions, rebalances, failures, retries, dead letters,
settings.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext, pgettext
from django.views.decorators.http import require_safe

from mqadmin.actions.declaration import ActionUnavailable, fingerprint
from mqadmin.alerts import selectors as alerts
from mqadmin.clusters import selectors
from mqadmin.clusters.looking import note_looked_at
from mqadmin.clusters.selectors import GroupPage
from mqadmin.console import curve_drawing, sentences
from mqadmin.console.conflict_sentences import conflict_lines
from mqadmin.console.curve_range import read_range
from mqadmin.console.dead_letter_search import read_search
from mqadmin.console.group_tables import member_lines, queue_table, setting_lines
from mqadmin.console.live_page import live_page, or_404
from mqadmin.console.subscription_matrix import difference_lines, subscription_matrix
from mqadmin.console.tabs import Tab
from mqadmin.console.timeline import churn_text, timeline
from mqadmin.console.views.alerts import alert_lines
from mqadmin.console.views.dead_letters import failures_shown
from mqadmin.deadletters import failing
from mqadmin.deadletters import selectors as dead_letters
from mqadmin.groups.settings import settings_on_brokers
from mqadmin.hosting import set_wanted_instances
from mqadmin.hosting.hosted import hosted_instances
from mqadmin.hosting.sentences import reason_words
from mqadmin.hosting.waiting import Why
from mqadmin.hosting.waits import waits
from mqadmin.lag.broadcasting import of_members
from mqadmin.lag.curves import curves
from mqadmin.lag.deliveries import latest_deliveries
from mqadmin.lag.members_progress import held_queues, progress_of_members
from mqadmin.lag.queue_moments import queue_moments
from mqadmin.live.subscriptions import Subscription
from mqadmin.metrics.selectors import suspended_members
from mqadmin.ownership.models import Described
from mqadmin.ownership.rows import attach_owners
from mqadmin.people import access
from mqadmin.rebalances import selectors as rebalances
from mqadmin.retries import selectors as retries
from mqadmin.retries import standing
from mqadmin.subscriptions.selectors import clusters_with, compared


@require_safe
def health(request: HttpRequest, cluster: str, group: str) -> HttpResponse:
    def context(page: GroupPage) -> dict[str, Any]:
        held = held_queues([page.group.pk]).get(page.group.pk)
        past = queue_moments(page.group, page.queues, page.now)
        return {
            "table": queue_table(page.group, page.queues, page.now, held, past),
            "deliveries": latest_deliveries(page.cluster, group, page.now),
        }

    return _tab(request, "health", cluster, group, context)


@require_safe
def group_lag(request: HttpRequest, cluster: str, group: str) -> HttpResponse:
    """Shows the curves of a range (`?range=`), which ends now or at `?until=`; `?queue=` those of one queue."""
    chosen = read_range(request.GET)

    def context(page: GroupPage) -> dict[str, Any]:
        since, until = chosen.ends(page.now)
        found = curves(page.group, since, until)
        return {
            "range": chosen,
            "ranges": curve_drawing.range_links(chosen),
            "earlier": chosen.earlier(page.now),
            "later": chosen.later(page.now),
            "now_too": replace(chosen, until=None),
            "all_queues": chosen.of_queue(""),
            "curves": found,
            "lines": curve_drawing.curve_lines(found, rebalances.moments(page.group, since, until), chosen),
            "ticks": chosen.ticks(page.now),
            "queues": curve_drawing.queue_curve_lines(found, chosen),
            "gaps": curve_drawing.gap_words(found.gaps),
            "since_text": f"{since:%Y-%m-%d %H:%M:%S}",
            "until_text": f"{until:%Y-%m-%d %H:%M:%S}",
        }

    return _tab(request, "lag", cluster, group, context)


@require_safe
def members(request: HttpRequest, cluster: str, group: str) -> HttpResponse:
    def context(page: GroupPage) -> dict[str, Any]:
        lines = member_lines(page.members, page.queues, progress_of_members(page.group), of_members(page.group))
        return {"members": lines, "is_in_flight_told": any(line.in_flight is not None for line in lines)}

    return _tab(request, "members", cluster, group, context)


@require_safe
def subscriptions(request: HttpRequest, cluster: str, group: str) -> HttpResponse:
    seen = access.visible_clusters(request.user)

    def context(page: GroupPage) -> dict[str, Any]:
        found = compared(page.group, seen)
        return {
            "matrix": subscription_matrix(found),
            "conflicts": conflict_lines(found.findings, found.skipped),
            "differences": difference_lines([*page.members, *page.departed]),
            "history": found.history,
            "elsewhere": found.elsewhere,
        }

    names = () if access.sees_all(request.user) else ("some", *selectors.cluster_names(seen))
    elsewhere = [Subscription(other, group) for other in clusters_with(group, seen) if other != cluster]
    return _tab(request, "subscriptions", cluster, group, context, audience=names, beside=elsewhere)


@require_safe
def group_rebalances(request: HttpRequest, cluster: str, group: str) -> HttpResponse:
    before = request.GET.get("before", "")

    def context(page: GroupPage) -> dict[str, Any]:
        events = rebalances.of_group(page.cluster.pk, group, before=before)
        gaps = rebalances.gaps(page.cluster, events, page.now, before=before)
        churn = rebalances.churn_of(page.group, page.now)
        return {
            "events": events,
            "entries": timeline(events.rows, gaps),
            "restlessness": churn.restlessness,
            "churn": churn_text(churn),
            "now": page.now,
        }

    return _tab(request, "rebalances", cluster, group, context)


@require_safe
def group_dead_letters(request: HttpRequest, cluster: str, group: str) -> HttpResponse:
    search, before = read_search(request, cluster), request.GET.get("before", "")

    def context(page: GroupPage) -> dict[str, Any]:
        totals = dead_letters.totals(page.cluster, page.now, group)
        return {
            **failures_shown(page.cluster, search, before, totals, page.now, group),
            "totals": totals,
            "summary": sentences.dead_letters_sentence(totals),
            "search": search,
            "export_query": search.export_query(group=group),
            "now": page.now,
        }

    return _tab(request, "dead_letters", cluster, group, context)


@require_safe
def group_failures(request: HttpRequest, cluster: str, group: str) -> HttpResponse:
    """Asks the members, while the viewer waits, what failed there last; shows what this project's runtime keeps."""
    with or_404():
        page = selectors.group_page(cluster, group)
    told = failing.members_told(page.cluster, group, page.members)
    kept = failing.message_failures(page.cluster, group).page(request.GET.get("before", ""))
    context = {
        "here": cluster,
        "section": "groups",
        "page": page,
        "now": page.now,
        "told": told,
        "summary": sentences.failing_sentence(told),
        "rows": kept.rows,
        "older_url": f"?before={quote(kept.older)}" if kept.older else "",
        "tab": "failures",
        "tabs": _tabs(page),
    }
    response = render(request, "console/group_failures.html", context)
    add_never_cache_headers(response)
    return response


@require_safe
def group_retries(request: HttpRequest, cluster: str, group: str) -> HttpResponse:
    """Shows failed attempts and when the next ones come; asks what is due while the viewer waits."""
    with or_404():
        page = selectors.group_page(cluster, group)
    found = standing.standing_of(page.cluster, group, page.members)
    attempts = retries.attempts(page.cluster, group).page(request.GET.get("before", ""))
    attempt_count, is_of_members = standing.limit_of(found, page.group)
    # After the answers, so that what came due meanwhile is not said to wait.
    now = timezone.now()
    waiting = retries.waiting(page.cluster, group, now)
    fates = standing.fates(attempts.rows, found, now)
    context = {
        "here": cluster,
        "section": "groups",
        "page": page,
        "now": now,
        "standing": found,
        "waiting": waiting,
        "limit": attempt_count,
        "limit_words": sentences.limit_sentence(attempt_count, is_of_members=is_of_members),
        "reading": retries.reading(page.cluster),
        "summary": sentences.retries_sentence(waiting, found, now),
        "rows": [(row, fates[row.pk]) for row in attempts.rows],
        "older_url": f"?before={quote(attempts.older)}" if attempts.older else "",
        "tab": "retries",
        "tabs": _tabs(page),
    }
    response = render(request, "console/group_retries.html", context)
    add_never_cache_headers(response)
    return response


@require_safe
def group_settings(request: HttpRequest, cluster: str, group: str) -> HttpResponse:
    """Asks the brokers, while the viewer waits, for the group's settings."""
    with or_404():
        page = selectors.group_page(cluster, group)
    found, error = None, ""
    try:
        found = settings_on_brokers(page.cluster, group)
    except ActionUnavailable as caught:
        error = str(caught)
    context = {
        "here": cluster,
        "section": "groups",
        "page": page,
        "found": found,
        "lines": setting_lines(found) if found is not None else [],
        "error": error,
        "summary": sentences.group_settings_sentence(found) if found is not None else "",
        "tab": "settings",
        "tabs": _tabs(page),
    }
    response = render(request, "console/group_settings.html", context)
    add_never_cache_headers(response)
    return response


def _tab(
    request: HttpRequest,
    tab: str,
    cluster: str,
    group: str,
    tab_context: Callable[[GroupPage], dict[str, Any]],
    audience: Sequence[str] = (),
    beside: Sequence[Subscription] = (),
) -> HttpResponse:
    """`beside`: what else the tab shows."""

    def context() -> dict[str, Any]:
        page = selectors.group_page(cluster, group)
        note_looked_at(page.group, page.now)
        attach_owners([page.group], page.cluster, Described.GROUP)
        return {
            "page": page,
            "tab": tab,
            "tab_template": f"console/group_{tab}.html",
            "tabs": _tabs(page),
            "alerts": alert_lines(alerts.of_group(page.cluster, group)),
            "suspended": suspended_members(page.group, page.now),
            **_hosted(page),
            **tab_context(page),
        }

    return live_page(
        request,
        "group",
        context,
        shows=[Subscription(cluster, group), *beside],
        cluster=cluster,
        section="groups",
        permissions=[set_wanted_instances.DECLARATION.permission],
        audience=audience,
    )


# By the sentence before.
_SAID = (Why.STOPPED, Why.STARTING)


def _hosted(page: GroupPage) -> dict[str, Any]:
    """Returns what the form for the number of instances needs; empty for a group that this project does not host."""
    hosted = hosted_instances(page.cluster.namesrv, page.group.name)
    if hosted is None:
        return {}
    return {
        "hosted": hosted,
        "instances_sentence": sentences.instances_sentence(hosted),
        "waits": [(one.why, reason_words(one)) for one in waits(page.cluster, page.group.name) if one.why not in _SAID],
        "scale_permission": set_wanted_instances.DECLARATION.permission,
        "key": uuid.uuid4(),
        "fingerprint": fingerprint({"": set_wanted_instances.wanted_values(hosted.wanted)}),
    }


def _tabs(page: GroupPage) -> list[Tab]:
    names = [page.cluster.name, page.group.name]
    return [
        Tab("health", reverse("group", args=names), gettext("Health")),
        Tab("lag", reverse("group_lag", args=names), gettext("Lag")),
        Tab("members", reverse("group_members", args=names), gettext("Members"), str(len(page.members))),
        Tab("subscriptions", reverse("group_subscriptions", args=names), gettext("Subscriptions")),
        Tab("rebalances", reverse("group_rebalances", args=names), gettext("Rebalances")),
        Tab("failures", reverse("group_failures", args=names), gettext("Failures")),
        Tab("retries", reverse("group_retries", args=names), pgettext("page", "Retries")),
        Tab("dead_letters", reverse("group_dead_letters", args=names), gettext("Dead letters")),
        Tab("settings", reverse("group_settings", args=names), gettext("Settings")),
    ]
