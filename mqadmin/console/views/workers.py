"""`/workers/`: the Celery workers that run instances of this project's groups."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from mqadmin.hosting import workers as selectors

PERMISSION = "mq_consumer.view_loopsworker"


@require_safe
def workers(request: HttpRequest) -> HttpResponse:
    """Lists the workers by name, with what each runs."""
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
    context = {
        "section": "workers",
        "now": timezone.now(),
        "rows": selectors.workers(),
        "differences": selectors.differences_now(),
    }
    response = render(request, "console/workers.html", context)
    add_never_cache_headers(response)
    return response
