"""`…/deadletters/failures/<failure>/patch/`: a JSON Patch for the dead letters of a failure, its preview, its run."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_http_methods

from mqadmin.action_runs import runner
from mqadmin.actions.arguments import InvalidArguments
from mqadmin.actions.declaration import ActionRefused, ActionUnavailable, Preview
from mqadmin.clusters import selectors
from mqadmin.console.live_page import or_404
from mqadmin.console.previewed_run import run_previewed
from mqadmin.deadletters import selectors as dead_letter_selectors
from mqadmin.deadletters.models import Failure
from mqadmin.mending.differences import body_diff
from mqadmin.mending.patch_dead_letters import PatchPlan, reasons
from mqadmin.people.caller import page_caller

ACTION = "patch_dead_letters"
# Diffs that a person looks through.
DIFFS_MAX = 3
REASONS_MAX = 10
EXAMPLE = '[{"op": "replace", "path": "/currency", "value": "EUR"}]'


@require_http_methods(["GET", "HEAD", "POST"])
def patch_failure(request: HttpRequest, cluster: str, failure: int) -> HttpResponse:
    """Asks for the patch, shows what it does to the latest dead letters, and mends them."""
    with or_404():
        found = dead_letter_selectors.failure(selectors.cluster_head(cluster), failure)
    if not runner.may(page_caller(request), ACTION, cluster):
        raise PermissionDenied
    if request.method != "POST":
        return _page(request, found, {"after": request.GET.get("after", "")})
    return _run(request, found) if "run" in request.POST else _preview(request, found)


def _values(request: HttpRequest, failure: Failure) -> dict[str, Any]:
    values: dict[str, Any] = {
        "group": failure.group_name,
        "failure": failure.pk,
        "patch": request.POST.get("patch", ""),
        # What dies while somebody looks at the preview is not in the run.
        "until": request.POST.get("until") or timezone.now().isoformat(),
    }
    return values | ({"after": request.POST["after"]} if request.POST.get("after") else {})


def _preview(request: HttpRequest, failure: Failure, reason: str = "", status: int = 200) -> HttpResponse:
    values = _values(request, failure)
    if not reason:
        values["until"] = timezone.now().isoformat()
    context = {"patch": values["patch"], "after": values.get("after", ""), "until": values["until"], "reason": reason}
    try:
        found: Preview[PatchPlan] = runner.preview(page_caller(request), ACTION, failure.cluster.name, values)
    except InvalidArguments as error:
        words = [sentence for sentences in error.errors.values() for sentence in sentences]
        return _page(request, failure, context | {"errors": words}, 422)
    except (ActionRefused, ActionUnavailable) as error:
        return _page(request, failure, context | {"reason": reason or str(error)}, 409)
    return _page(request, failure, context | _shown(found), status)


def _shown(found: Preview[PatchPlan]) -> dict[str, Any]:
    """Returns what the preview says: how many, some diffs, why not the others."""
    items = found.plan.items
    changed = [one for one in items if one.change.is_change and one.wanted is not None]
    return {
        "preview": found,
        "key": uuid.uuid4(),
        "item_count": len(items),
        "changed_count": len(changed),
        "reasons": list(reasons(items).items())[:REASONS_MAX],
        "diffs": [
            (one.dead, body_diff(one.mending.present.body, one.wanted.body))
            for one in changed[:DIFFS_MAX]
            if one.mending is not None and one.wanted is not None
        ],
    }


def _run(request: HttpRequest, failure: Failure) -> HttpResponse:
    def refused(reason: str) -> HttpResponse:
        return _preview(request, failure, reason, 409)

    return run_previewed(request, ACTION, failure.cluster.name, _values(request, failure), refused)


def _page(request: HttpRequest, failure: Failure, context: dict[str, Any], status: int = 200) -> HttpResponse:
    cluster = failure.cluster.name
    frame = {"here": cluster, "cluster": cluster, "section": "dead_letters", "failure": failure, "example": EXAMPLE}
    response = render(request, "console/patch_failure.html", frame | context, status=status)
    add_never_cache_headers(response)
    return response
