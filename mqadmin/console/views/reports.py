"""`…/reports/`: the days of a cluster, and one day as a page that a person would print."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.console import report_sentences
from mqadmin.console.charts import day_charts, with_charts
from mqadmin.console.live_page import live_page, or_404
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription
from mqadmin.reports import selectors as report_selectors
from mqadmin.reports.installed import missing_packages


@require_safe
def reports(request: HttpRequest, cluster: str) -> HttpResponse:
    """Lists the days that have a report, the latest first, and how far the job is."""
    shows = [Subscription(cluster, kinds=(ChangeKind.REPORTS,))]
    return live_page(request, "reports", lambda: _reports(cluster), shows=shows, cluster=cluster, section="reports")


def _reports(cluster: str) -> dict[str, Any]:
    head = selectors.cluster_head(cluster)
    return {
        "head": head,
        "cluster": cluster,
        "now": timezone.now(),
        "days": report_selectors.DayReportRows(head).after(None, report_selectors.DAYS_SHOWN),
        "runs": report_selectors.latest_runs(head),
        "missing": ", ".join(missing_packages()),
    }


@require_safe
@with_charts
def day_report(request: HttpRequest, cluster: str, day: str) -> HttpResponse:
    """Shows one day: what happened in words, figures with their tables, and the groups."""
    with or_404():
        head = selectors.cluster_head(cluster)
        page = report_selectors.day_page(head, _read_day(day))
    worst = page.groups[0] if page.groups else None
    context = {
        "here": cluster,
        "cluster": cluster,
        "section": "reports",
        "now": timezone.now(),
        "title": report_sentences.day_title(page.report, worst),
        "sentences": report_sentences.day_sentences(page),
        "page": page,
        "charts": day_charts(page.groups),
    }
    response = render(request, "console/day_report.html", context)
    add_never_cache_headers(response)
    return response


@require_safe
def day_report_file(_request: HttpRequest, cluster: str, day: str) -> FileResponse:
    """Sends the Parquet file of the groups of a day."""
    with or_404():
        report = report_selectors.day_report(selectors.cluster_head(cluster), _read_day(day))
    folder = Path(settings.MQADMIN_DATA) / "reports" / "v1" / report.folder / "groups"
    path = next(iter(sorted(folder.glob("part-*.parquet"))), None)
    if path is None:
        raise Http404(f"the Parquet of {day} is not on this machine")
    return FileResponse(path.open("rb"), as_attachment=True, filename=f"{cluster}-{day}.parquet")


def _read_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise Http404(f"{text} is no day: it must be as in 2026-11-22") from error
