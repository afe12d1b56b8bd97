"""`/jobs/`: actions that run at their times, with what became of each the last time."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from mqadmin.console.views.audit import action_words
from mqadmin.jobs import selectors

PERMISSION = "django_celery_beat.view_periodictask"


@require_safe
def jobs(request: HttpRequest) -> HttpResponse:
    """Lists the jobs by name."""
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
    now = timezone.now()
    rows = [(job, action_words(job.action)) for job in selectors.jobs()]
    response = render(request, "console/jobs.html", {"section": "jobs", "now": now, "rows": rows})
    add_never_cache_headers(response)
    return response
