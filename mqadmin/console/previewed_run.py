"""The run of an action whose preview is a page of its own, with the key and the fingerprint that stood in its form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import InProgress, Refusal
from mqadmin.people.caller import page_caller


def run_previewed(
    request: HttpRequest,
    action: str,
    cluster: str,
    values: Mapping[str, Any],
    refused: Callable[[str], HttpResponse],
) -> HttpResponse:
    """Carries out and leads to the page of the run; a refusal's reason goes to `refused`, which returns the page."""
    result = runner.run(
        page_caller(request),
        action,
        cluster,
        values,
        key=request.POST.get("key", ""),
        fingerprint=request.POST.get("fingerprint"),
    )
    if isinstance(result, InProgress) or result.refusal is None:
        return redirect("action_run", result.run_id)
    if result.refusal == Refusal.PERMISSION:
        raise PermissionDenied
    return refused(result.reason)
