"""`/mailed-reports/<token>/`: the summary of one day, for whoever has the link from the mail. It leads nowhere else."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from mqadmin.console import report_mail
from mqadmin.reports.models import DayReport


@login_not_required
@require_safe
def mailed_report(request: HttpRequest, token: str) -> HttpResponse:
    """Shows the summary in the mail's language; 410 for a link that is too old, 404 for any other."""
    try:
        opened = report_mail.opened(token)
        with translation.override(opened.language):
            return _page(request, report_mail.summary(opened.cluster, opened.day), 200)
    except report_mail.OldLink:
        return _page(request, {"is_old": True, "link_days": report_mail.LINK_AGE.days}, 410)
    except (report_mail.BadLink, DayReport.DoesNotExist):
        return _page(request, {}, 404)


def _page(request: HttpRequest, context: dict[str, Any], status: int) -> HttpResponse:
    response = render(request, "console/mailed_report.html", context, status=status)
    add_never_cache_headers(response)
    # The address is the key: no other site and no search engine is told.
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex"
    return response
