"""One action on many topics or groups of a cluster: which, what to do, what it will do to each, what became of each.

GET with the filters of the list shows what they find, to be ticked off; with the action and the names the form, and
with arguments the preview of each. POST carries out and leads to the page of all these runs.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from mqadmin.action_runs import runner, runs
from mqadmin.action_runs.many import SubjectPreview, WrongSubjects, checked, preview_many, run_many
from mqadmin.action_runs.runs import BATCH_RUNS_MAX, InProgress, Result
from mqadmin.actions import registry
from mqadmin.actions.declaration import AnyAction
from mqadmin.clusters import selectors
from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.sorted_rows import SortedRows
from mqadmin.console import sentences
from mqadmin.console.action_pages import CHANGE_TITLES, PAGES, run_address
from mqadmin.console.action_values import ItemLine, item_line
from mqadmin.console.listing import Listing
from mqadmin.console.live_page import or_404
from mqadmin.console.views.action import SECTION_WORDS
from mqadmin.console.views.groups import groups_listing
from mqadmin.console.views.topics import chosen_kind, topics_listing
from mqadmin.ownership.models import Described
from mqadmin.ownership.rows import with_owners
from mqadmin.people import access
from mqadmin.people.caller import page_caller

# A person waits for the previews; what has none by then is left for the next time.
PREVIEWS_WITHIN_S = 20.0
# After one run has ended; a busy database included.
NEXT_BEGINS_WITHIN = timedelta(seconds=10)
# Names in the message about what was not begun.
NAMES_SAID_MAX = 10


@dataclass(frozen=True, slots=True)
class Kind:
    """What there can be many of: its section, its words, and the rows that a query string finds."""

    section: str
    section_word: Promise
    title: Promise
    rows: Callable[[Cluster, QueryDict], SortedRows[Any]]


@dataclass(frozen=True, slots=True)
class SubjectLine:
    """A subject with what a run would do to it, or why it would be refused. `fingerprint` "": nothing to do."""

    subject: str
    lines: tuple[ItemLine, ...]
    warnings: tuple[str, ...]
    reason: str
    fingerprint: str


def _topics(cluster: Cluster, query: QueryDict) -> SortedRows[Any]:
    listing = topics_listing(query)
    rows = selectors.topic_rows(cluster, filter=listing.text, kind=chosen_kind(listing), **_order(listing))
    return with_owners(rows, cluster, Described.TOPIC, listing.owner)


def _groups(cluster: Cluster, query: QueryDict) -> SortedRows[Any]:
    listing = groups_listing(query)
    rows = selectors.group_rows(cluster, filter=listing.text, verdict=listing.choice, **_order(listing))
    return with_owners(rows, cluster, Described.GROUP, listing.owner)


def _order(listing: Listing) -> dict[str, Any]:
    return {"sort": listing.sort, "is_descending": listing.is_descending}


KINDS: Mapping[str, Kind] = {
    "topic": Kind("topics", gettext_lazy("Topics"), gettext_lazy("Change many topics"), _topics),
    "group": Kind("groups", gettext_lazy("Groups"), gettext_lazy("Change many groups"), _groups),
}


@require_http_methods(["GET", "HEAD", "POST"])
def many(request: HttpRequest, cluster: str, kind: str) -> HttpResponse:
    """Asks for the subjects, then for the action's arguments, shows the previews, and carries out."""
    with or_404():
        head = selectors.cluster_head(cluster)
    offered = _offered(request, kind, cluster)
    if not offered:
        raise PermissionDenied
    data = request.POST if request.method == "POST" else request.GET
    action = offered.get(data.get("action", ""))
    if action is None:
        return _choose(request, head, kind, offered)
    try:
        subjects = checked(data.getlist("subject"))
    except WrongSubjects as error:
        return _choose(request, head, kind, offered, str(error))
    if request.method == "POST":
        return _run(request, cluster, kind, action, subjects)
    return _show(request, cluster, kind, action, subjects, _bound_form(request.GET, cluster, action, subjects))


@require_safe
def many_runs(request: HttpRequest, batch: uuid.UUID) -> HttpResponse:
    """Shows what became of each, to the person who asked for it and to those who may read the audit."""
    now = timezone.now()
    ended, under_way = runs.find_together(batch, now)
    if not ended and not under_way:
        raise Http404
    # One key makes one batch, whatever clusters it was sent for.
    readable = access.clusters_where(request.user, "mq_audit.view_auditentry")
    own = request.user.get_username()

    def may_see(one: Result | InProgress) -> bool:
        return one.actor == own or readable is None or one.cluster in readable

    ended, under_way = tuple(filter(may_see, ended)), tuple(filter(may_see, under_way))
    if not ended and not under_way:
        raise PermissionDenied
    of = request.GET.get("of", "")
    asked_for = min(int(of), BATCH_RUNS_MAX) if of.isascii() and of.isdigit() and len(of) < 4 else 0
    expected = max(asked_for, len(ended) + len(under_way))
    # After one has ended, the next begins within seconds; what is missing later never comes: its process has ended.
    is_running = bool(under_way) or (len(ended) < expected and now - max(one.at for one in ended) < NEXT_BEGINS_WITHIN)
    first: Result | InProgress = ended[0] if ended else under_way[0]
    context = {
        "here": first.cluster,
        **_together((*ended, *under_way)),
        "run": first,
        "at": ended[0].at if ended else under_way[0].started_at,
        "summary": sentences.together_sentence(ended, expected, is_running=is_running),
        "is_running": is_running,
        "outcome": "running" if is_running else "partial" if len(ended) < expected else _worst(ended),
        "lines": [(one, _title(registry.find(one.action)), run_address(one), _subject_address(one)) for one in ended],
        "now": now,
    }
    return _page(request, "console/many_runs.html", context)


def _together(found: tuple[Result | InProgress, ...]) -> dict[str, Any]:
    """Returns title and section of runs of one action; of several ones they are those of a file that was applied."""
    actions = {one.action for one in found}
    if len(actions) > 1:
        return {
            "section": "configuration",
            "section_word": gettext("As a file"),
            "subjects_word": gettext("name"),
            "title": gettext("Apply a file"),
            "are_several": True,
        }
    page = PAGES[actions.pop()]
    return {
        "section": page.section,
        "section_word": SECTION_WORDS[page.section],
        "subjects_word": SECTION_WORDS[page.section],
        "title": _title(registry.find(page.action)),
    }


def _subject_address(result: Result) -> str:
    return PAGES[result.action].subject_address(result.cluster, result.subject)


def _worst(found: tuple[Result, ...]) -> str:
    outcomes = {one.outcome for one in found}
    return str(outcomes.pop()) if len(outcomes) == 1 else "partial"


def _offered(request: HttpRequest, kind: str, cluster: str) -> dict[str, AnyAction]:
    """Returns the actions on such subjects that the viewer may do, by name."""
    caller = page_caller(request)
    return {
        name: action
        for name, action in registry.ACTIONS.items()
        if action.subject == kind and runner.may(caller, name, cluster)
    }


def _title(action: AnyAction) -> str:
    return str(CHANGE_TITLES.get(action.name, action.title))


def _choose(
    request: HttpRequest, cluster: Cluster, kind: str, offered: Mapping[str, AnyAction], reason: str = ""
) -> HttpResponse:
    """Shows what the filters find, all of it ticked, and the actions."""
    rows = KINDS[kind].rows(cluster, request.GET)
    ticked = set(request.GET.getlist("subject"))
    names = [row.name for row in rows.after(None, BATCH_RUNS_MAX)]
    context = {
        **_frame(cluster.name, kind),
        "names": [(name, not ticked or name in ticked) for name in names],
        "total_count": rows.total_count(),
        "most": BATCH_RUNS_MAX,
        "actions": [(name, _title(action)) for name, action in offered.items()],
        "reason": reason,
    }
    return _page(request, "console/many_choose.html", context, 422 if reason else 200)


def _values(data: QueryDict, form: Form, subject: str) -> dict[str, Any]:
    """Returns the arguments of a query or a form but for the subject, as the form's own widgets read them.

    A field that is left blank says nothing: what it is about differs from one subject to the next, and stays.
    """
    values = {
        name: field.widget.value_from_datadict(data, {}, name)
        for name, field in form.fields.items()
        if name in data and name != subject
    }
    return {name: value for name, value in values.items() if value != "" or form.fields[name].required}


def _bound_form(data: QueryDict, cluster: str, action: AnyAction, subjects: list[str]) -> Form:
    """Returns the form with what was typed; unbound where nothing was, and something must be."""
    empty = runner.form(action.name, cluster)
    values = _values(data, empty, action.subject)
    asked = [name for name in empty.fields if name != action.subject]
    if asked and not values and "asked" not in data:
        return empty
    defaults = {name: field.initial for name, field in empty.fields.items() if field.initial is not None}
    return runner.form(action.name, cluster, data=defaults | values | {action.subject: subjects[0]})


def _run(request: HttpRequest, cluster: str, kind: str, action: AnyAction, subjects: list[str]) -> HttpResponse:
    form = _bound_form(request.POST, cluster, action, subjects)
    if not form.is_bound or not form.is_valid():
        return _show(request, cluster, kind, action, subjects, form, 422)
    confirmation = request.POST.get("confirmation", "").strip()
    if action.is_confirmed_by_name and confirmation != str(len(subjects)):
        error = gettext("Type %(n)d to confirm. Nothing was changed.") % {"n": len(subjects)}
        return _show(request, cluster, kind, action, subjects, form, 422, confirmation_error=error)
    done = run_many(
        page_caller(request),
        action.name,
        cluster,
        _values(request.POST, form, action.subject),
        subjects,
        key=request.POST.get("key", ""),
        fingerprints=dict(zip(subjects, request.POST.getlist("fingerprint"), strict=False)),
        confirmation=confirmation,
    )
    if done.not_begun:
        names = ", ".join(done.not_begun[:NAMES_SAID_MAX])
        words = gettext("No time was left for %(n)d of them, among these: %(names)s. Do the same with them again.")
        messages.warning(request, words % {"n": len(done.not_begun), "names": names})
    return redirect(f"{reverse('many_runs', args=[done.batch])}?of={len(done.results)}")


def _show(
    request: HttpRequest,
    cluster: str,
    kind: str,
    action: AnyAction,
    subjects: list[str],
    form: Form,
    http_status: int = 200,
    *,
    confirmation_error: str = "",
) -> HttpResponse:
    lines: list[SubjectLine] = []
    if form.is_bound and form.is_valid():
        lines = _previews(request, cluster, action, subjects, form)
    previewed = {line.subject for line in lines}
    wanted = [line for line in lines if line.fingerprint]
    context = {
        **_frame(cluster, kind),
        "action": action,
        "action_title": _title(action),
        "subjects": subjects,
        "form": form,
        "fields": [form[name] for name in form.fields if name != action.subject],
        "is_blank_kept": any(not one.required and one.initial is None for one in form.fields.values()),
        "hidden": [form[name].as_hidden() for name in form.fields if name != action.subject],
        "lines": lines,
        "wanted": wanted,
        "late": [name for name in subjects if name not in previewed] if lines else [],
        "most": BATCH_RUNS_MAX,
        "key": uuid.uuid4(),
        "is_confirmed_by_name": action.is_confirmed_by_name,
        "confirmation": request.POST.get("confirmation", ""),
        "confirmation_error": confirmation_error,
    }
    return _page(request, "console/many.html", context, http_status)


def _previews(
    request: HttpRequest, cluster: str, action: AnyAction, subjects: list[str], form: Form
) -> list[SubjectLine]:
    """Returns what would become of each, as far as that is known within PREVIEWS_WITHIN_S."""
    ends = time.monotonic() + PREVIEWS_WITHIN_S
    values = {name: value for name, value in form.data.items() if name != action.subject}
    lines = []
    for one in preview_many(page_caller(request), action.name, cluster, values, subjects):
        lines.append(_line(one))
        if time.monotonic() > ends:
            break
    return lines


def _line(one: SubjectPreview) -> SubjectLine:
    if one.preview is None:
        return SubjectLine(one.subject, (), (), one.reason, "")
    changes = [change for change in one.preview.changes if change.is_change]
    return SubjectLine(
        one.subject,
        tuple(item_line(one.subject, change.item, change.before, change.after) for change in changes),
        one.preview.warnings,
        "",
        one.preview.fingerprint if changes else "",
    )


def _frame(cluster: str, kind: str) -> dict[str, Any]:
    """Returns what crumbs and navigation need."""
    found = KINDS[kind]
    return {"here": cluster, "section": found.section, "section_word": found.section_word, "title": found.title}


def _page(request: HttpRequest, template: str, context: dict[str, Any], http_status: int = 200) -> HttpResponse:
    response = render(request, template, context, status=http_status)
    add_never_cache_headers(response)
    return response
