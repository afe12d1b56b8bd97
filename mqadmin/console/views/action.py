"""Pages that run an action, made from its declaration, and the page of a run.

GET shows the form; with arguments in the address it shows the preview below it, so a link opens the same preview. POST
carries out and leads to the page of the run.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.forms import Form, RadioSelect
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from mqadmin.action_runs import runner, runs
from mqadmin.action_runs.runs import InProgress, Refusal, Result
from mqadmin.actions import registry
from mqadmin.actions.arguments import InvalidArguments, arguments_json, read_arguments, secret_names
from mqadmin.actions.declaration import ActionRefused, ActionUnavailable, AnyAction, Preview
from mqadmin.clusters import selectors
from mqadmin.console import sentences
from mqadmin.console.action_pages import PAGES, SECTIONS_OF_ALL, ActionPage, undo_address
from mqadmin.console.action_values import item_line
from mqadmin.console.curl import curl_command
from mqadmin.console.live_page import or_404
from mqadmin.console.present_values import start_form, start_lines, start_sentence
from mqadmin.people import access
from mqadmin.people.caller import page_caller

# The argument that names the brokers to be changed, where an action has one.
BROKERS = "brokers"
HTTP_STATUS = {Refusal.ARGUMENTS: 422, Refusal.CONFIRMATION: 422}
REFUSED_HTTP_STATUS = 409
SECTION_WORDS = {
    "reports": gettext_lazy("Reports"),
    "topics": gettext_lazy("Topics"),
    "groups": gettext_lazy("Groups"),
    "dead_letters": gettext_lazy("Dead letters"),
    "replays": gettext_lazy("Replays"),
    "dead_letter_rules": gettext_lazy("Rules for dead letters"),
    "audit": gettext_lazy("Audit"),
    "people": gettext_lazy("People"),
    "jobs": gettext_lazy("Jobs"),
    "workers": gettext_lazy("Workers"),
    "outbox": gettext_lazy("Outbox"),
    "tokens": gettext_lazy("API tokens"),
    "alerts": gettext_lazy("Alerts"),
    "alert_rules": gettext_lazy("Rules for alerts"),
    "alert_channels": gettext_lazy("Channels for alerts"),
    "alert_silences": gettext_lazy("Silences"),
    "overview": gettext_lazy("All clusters"),
    "cluster": gettext_lazy("Brokers"),
}


@require_http_methods(["GET", "HEAD", "POST"])
def action(request: HttpRequest, page: ActionPage, cluster: str = "", **names: str) -> HttpResponse:
    """Shows an action's form and preview, or carries it out; `cluster` "" where it is about the installation."""
    subject = str(next(iter(names.values()), ""))
    with or_404():
        if page.has_cluster:
            selectors.cluster_head(cluster)
        if page.require is not None:
            page.require(cluster, subject)
    if request.method == "POST":
        return _run(request, page, cluster, subject)
    if not runner.may(page_caller(request), page.action, cluster):
        raise PermissionDenied
    empty = runner.form(page.action, cluster, subject)
    if secret_names(registry.find(page.action)):
        return _show(request, page, cluster, subject, empty)
    values = _values(page, cluster, subject, request.GET)
    if page.present is not None and not set(request.GET) & (set(empty.fields) - {BROKERS}):
        return _show_present(request, page, cluster, subject, empty)
    if _is_begun(page, empty, subject, request.GET):
        # A link to the form that says some of it: what is missing is still to be typed, and no error yet.
        empty.initial.update(values)
        return _show(request, page, cluster, subject, empty)
    if set(values) & set(request.GET) or not any(empty.fields[name].required for name in _asked(page, empty, subject)):
        defaults = {name: field.initial for name, field in empty.fields.items() if field.initial is not None}
        return _show(request, page, cluster, subject, runner.form(page.action, cluster, subject, defaults | values))
    return _show(request, page, cluster, subject, empty)


def _show_present(request: HttpRequest, page: ActionPage, cluster: str, subject: str, form: Form) -> HttpResponse:
    """Shows a form that starts at what the brokers have."""
    assert page.present is not None
    offered = {name for name, _word in form.fields[BROKERS].choices}  # type: ignore[attr-defined]
    chosen = [name for name in request.GET.getlist(BROKERS) if name in offered]
    try:
        found = page.present(selectors.cluster_head(cluster), subject)
    except ActionUnavailable as error:
        return _show(request, page, cluster, subject, form, further={"reason": str(error)})
    start_form(form, found, chosen)
    further = {"start_words": start_sentence(found, chosen), "start_lines": start_lines(found)}
    return _show(request, page, cluster, subject, form, further=further)


@require_safe
def action_run(request: HttpRequest, run: uuid.UUID) -> HttpResponse:
    """Shows a run item by item, to the person who started it and to those who may read the audit."""
    found = runs.find(run)
    if found is None:
        raise Http404
    if found.actor != request.user.get_username():
        readable = access.clusters_where(request.user, "mq_audit.view_auditentry")
        if readable is not None and found.cluster not in readable:
            raise PermissionDenied
    return _page(request, "console/action_run.html", _run_context(found))


def _run_context(found: Result | InProgress) -> dict[str, Any]:
    page = PAGES[found.action]
    context: dict[str, Any] = {"run": found, "title": registry.find(found.action).title, **_frame(page, found.cluster)}
    match found:
        case Result():
            is_there = not found.items or any(one.after != {} for one in found.items)
            context |= {
                "items": [(one, item_line(found.subject, one.item, one.before, one.after)) for one in found.items],
                "words": sentences.outcome_words(found),
                "now": timezone.now(),
                "undo_url": undo_address(found),
                "subject_url": page.subject_address(found.cluster, found.subject) if is_there else "",
            }
        case InProgress():
            context["is_running"] = True
    return context


def _frame(page: ActionPage, cluster: str) -> dict[str, Any]:
    """Returns what crumbs and navigation need."""
    return {
        "here": "" if page.section in SECTIONS_OF_ALL else cluster,
        "section": "alerts" if page.section.startswith("alert") else page.section,
        "section_word": SECTION_WORDS[page.section],
        "section_url": page.section_address(cluster),
    }


def _run(request: HttpRequest, page: ActionPage, cluster: str, subject: str) -> HttpResponse:
    values = _values(page, cluster, subject, request.POST)
    result = runner.run(
        page_caller(request),
        page.action,
        cluster,
        values,
        key=request.POST.get("key", ""),
        fingerprint=request.POST.get("fingerprint"),
        confirmation=request.POST.get("confirmation", ""),
    )
    if isinstance(result, Result) and page.ends is not None:
        return page.ends(request, result)
    if isinstance(result, Result) and any(one.secret for one in result.items):
        return _page(request, "console/action_run.html", _run_context(result))
    if isinstance(result, InProgress) or result.refusal is None:
        return redirect("action_run", result.run_id)
    if result.refusal == Refusal.PERMISSION:
        raise PermissionDenied
    form = runner.form(page.action, cluster, subject, values)
    if result.refusal == Refusal.ARGUMENTS:
        _add_errors(form, result.errors)
    return _show(request, page, cluster, subject, form, result)


def _show(
    request: HttpRequest,
    page: ActionPage,
    cluster: str,
    subject: str,
    form: Form,
    refused: Result | None = None,
    *,
    further: Mapping[str, Any] | None = None,
) -> HttpResponse:
    declared = registry.find(page.action)
    # What has a secret is sent at once by a form that posts: a preview's address would stand in logs.
    has_secrets = bool(secret_names(declared))
    preview: Preview[Any] | None = None
    reason = curl = ""
    if form.is_bound and form.is_valid() and not has_secrets:
        try:
            values = _values(page, cluster, subject, form.data)
            preview = runner.preview(page_caller(request), page.action, cluster, values)
            curl = _curl(request, declared, cluster, values)
        except InvalidArguments as error:
            _add_errors(form, error.errors)
        except (ActionRefused, ActionUnavailable) as error:
            reason = str(error)
    subject = subject or str(form.data.get(declared.subject, "")).strip()
    asked = _asked(page, form, subject if page.has_subject else "")
    context = {
        "page": page,
        "title": page.title or declared.title,
        "cluster": cluster,
        "subject": subject,
        "subject_url": page.subject_address(cluster, subject) if page.has_subject else "",
        "form": form,
        "fields": [form[name] for name in asked if not _is_folded(page, form, name)],
        "folded": [form[name] for name in asked if _is_folded(page, form, name)],
        "hidden": [form[name].as_hidden() for name in form.fields],
        "preview": preview,
        "has_secrets": has_secrets,
        "curl": curl,
        "items": [
            (change, item_line(subject, change.item, change.before, change.after))
            for change in (preview.changes if preview else ())
        ],
        "is_confirmed_by_name": declared.is_confirmed_by_name,
        "key": uuid.uuid4(),
        "reason": reason or (refused.reason if refused and refused.refusal not in HTTP_STATUS else ""),
        "confirmation": request.POST.get("confirmation", ""),
        "confirmation_error": refused.reason if refused and refused.refusal == Refusal.CONFIRMATION else "",
        **_frame(page, cluster),
        **(further or {}),
    }
    refusal = refused.refusal if refused is not None else None
    status = HTTP_STATUS.get(refusal, REFUSED_HTTP_STATUS) if refusal is not None else 200
    return _page(request, "console/action.html", context, status)


def _curl(request: HttpRequest, action: AnyAction, cluster: str, values: Mapping[str, Any]) -> str:
    arguments = arguments_json(read_arguments(action, selectors.cluster_head(cluster) if cluster else None, values))
    confirmation = arguments[action.subject] if action.is_confirmed_by_name else ""
    said = {name: value for name, value in arguments.items() if value is not None}
    return curl_command(request, action.name, cluster, said, confirmation=confirmation)


def _asked(page: ActionPage, form: Form, subject: str) -> list[str]:
    """Returns the names of the arguments that the form asks for; a subject in the address is not asked for."""
    return [name for name in form.fields if not (subject and name == registry.find(page.action).subject)]


def _is_begun(page: ActionPage, form: Form, subject: str, query: QueryDict) -> bool:
    """Returns whether the address leaves out a required argument that the form itself would send, if only empty."""
    return any(
        field.required
        and not isinstance(field.widget, RadioSelect)
        and field.widget.value_omitted_from_data(query, {}, name)
        for name in _asked(page, form, subject)
        if (field := form.fields[name]) and name not in page.folded
    )


def _is_folded(page: ActionPage, form: Form, name: str) -> bool:
    """Returns whether an argument stands behind the word: one that is asked for seldom, and says nothing here."""
    value, initial = form[name].value(), form.fields[name].initial
    return name in page.folded and not form[name].errors and value in (None, "", [], initial)


def _values(page: ActionPage, cluster: str, subject: str, data: QueryDict | Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a query or a form, as the form's own widgets read them."""
    form = runner.form(page.action, cluster, subject)
    values = {
        name: field.widget.value_from_datadict(data, {}, name) for name, field in form.fields.items() if name in data
    }
    return values | ({registry.find(page.action).subject: subject} if subject else {})


def _add_errors(form: Form, errors: Mapping[str, Any]) -> None:
    for name, words in errors.items():
        if name not in form.errors:
            form.add_error(name or None, list(words))


def _page(request: HttpRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    response = render(request, template, context, status=status)
    add_never_cache_headers(response)
    return response
