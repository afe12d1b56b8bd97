"""`…/deadletters/<message>/mend/`: body and properties of a dead letter in a form; a preview of the diff; the mending.

What is typed is sent with POST, also for the preview: a body is too long for an address, and no address may hold one.
"""

from __future__ import annotations

import uuid
from itertools import zip_longest
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from mqadmin.action_runs import runner
from mqadmin.actions.arguments import InvalidArguments
from mqadmin.actions.declaration import ActionRefused, ActionUnavailable, Preview
from mqadmin.clusters import selectors
from mqadmin.console.live_page import or_404
from mqadmin.console.previewed_run import run_previewed
from mqadmin.deadletters import selectors as dead_letter_selectors
from mqadmin.deadletters.models import DeadLetter
from mqadmin.mending.differences import body_diff, property_diff
from mqadmin.mending.mend_dead_letter import MendPlan
from mqadmin.mending.originals import Mending, NotToBeHad, is_hidden, mending_of
from mqadmin.mending.typed_bodies import from_field, typed
from mqadmin.people.caller import page_caller

ACTION = "mend_dead_letter"
# Empty lines for properties that are not there yet.
NEW_PROPERTIES = 2
# A form of more is no person's.
PROPERTIES_MAX = 200


@require_http_methods(["GET", "HEAD", "POST"])
def mend(request: HttpRequest, cluster: str, message: int) -> HttpResponse:
    """Shows the form, the diff of what was typed below it, or writes the mended copy."""
    with or_404():
        head = selectors.cluster_head(cluster)
        dead = dead_letter_selectors.dead_letter(head, message)
    caller = page_caller(request)
    if not runner.may(caller, ACTION, cluster):
        raise PermissionDenied
    if is_hidden(caller.role_on(head), dead):
        words = gettext("Bodies of this topic are hidden from your role: who may not see one may not mend it.")
        return _page(request, dead, {"reason": words}, 403)
    try:
        mending = mending_of(dead)
    except NotToBeHad as error:
        return _page(request, dead, {"reason": str(error)})
    if request.method != "POST":
        return _page(request, dead, _form(mending))
    values = _values(request, dead, mending)
    return _run(request, dead, mending, values) if "run" in request.POST else _preview(request, dead, mending, values)


def _preview(
    request: HttpRequest,
    dead: DeadLetter,
    mending: Mending,
    values: dict[str, Any],
    reason: str = "",
    status: int = 200,
) -> HttpResponse:
    """Shows the form as it was typed, and below it what it changes."""
    context = _form(mending) | _typed(request)
    try:
        found: Preview[MendPlan] = runner.preview(page_caller(request), ACTION, dead.cluster.name, values)
    except InvalidArguments as error:
        return _page(request, dead, context | {"errors": error.errors, "reason": reason}, 422)
    except (ActionRefused, ActionUnavailable) as error:
        return _page(request, dead, context | {"reason": reason or str(error)}, 409)
    original, wanted = found.plan.mending.original, found.plan.wanted
    shown = {
        "preview": found,
        "body_diff": body_diff(original.body, wanted.body),
        "property_diff": property_diff(original.properties, wanted.properties),
        "key": uuid.uuid4(),
        "reason": reason,
    }
    return _page(request, dead, context | shown, status)


def _run(request: HttpRequest, dead: DeadLetter, mending: Mending, values: dict[str, Any]) -> HttpResponse:
    def refused(reason: str) -> HttpResponse:
        return _preview(request, dead, mending, values, reason, 409)

    return run_previewed(request, ACTION, dead.cluster.name, values, refused)


def _values(request: HttpRequest, dead: DeadLetter, mending: Mending) -> dict[str, Any]:
    """Returns the action's arguments; a body that no field held stays as it is."""
    names, texts = request.POST.getlist("name")[:PROPERTIES_MAX], request.POST.getlist("value")[:PROPERTIES_MAX]
    # A line without both was left empty, or its property taken away.
    properties = {name.strip(): text for name, text in zip_longest(names, texts, fillvalue="") if name.strip() and text}
    values: dict[str, Any] = {"dead_letter": dead.pk, "properties": properties}
    if "body" in request.POST:
        values["body"] = from_field(request.POST["body"], mending.original.body)
        values["body_as"] = request.POST.get("body_as", "text")
    if request.POST.get("version", ""):
        values["version"] = request.POST["version"]
    return values


def _form(mending: Mending) -> dict[str, Any]:
    """Returns the form that starts at what a replay would send now."""
    present = mending.present
    return {
        "body": typed(present.body),
        "properties": [*present.properties.items(), *[("", "")] * NEW_PROPERTIES],
        "version": mending.version,
    }


def _typed(request: HttpRequest) -> dict[str, Any]:
    """Returns what was typed, so that it is not lost."""
    names, texts = request.POST.getlist("name")[:PROPERTIES_MAX], request.POST.getlist("value")[:PROPERTIES_MAX]
    return {
        "typed_body": request.POST.get("body"),
        "properties": list(zip_longest(names, texts, fillvalue="")),
        "version": request.POST.get("version", ""),
    }


def _page(request: HttpRequest, dead: DeadLetter, context: dict[str, Any], status: int = 200) -> HttpResponse:
    cluster = dead.cluster.name
    frame = {"here": cluster, "cluster": cluster, "section": "dead_letters", "message": dead}
    response = render(request, "console/mend.html", frame | context, status=status)
    add_never_cache_headers(response)
    return response
