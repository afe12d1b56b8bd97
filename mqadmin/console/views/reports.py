"""`…/reports/`: the days of a cluster; one day, week or month as a page that a person would print; a group on a day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from mqadmin.clusters import selectors
from mqadmin.clusters.models import Cluster
from mqadmin.console import report_sentences, report_tables
from mqadmin.console.charts import day_charts, drawn, group_day_charts, period_charts, with_charts
from mqadmin.console.live_page import live_page, or_404
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription
from mqadmin.reports import parquet_files
from mqadmin.reports import selectors as report_selectors
from mqadmin.reports.installed import missing_packages
from mqadmin.reports.models import GroupDay
from mqadmin.reports.parquet_files import MEDIA_TYPE
from mqadmin.reports.period_figures import period_page
from mqadmin.reports.periods import Period, day_bounds, month_of, read_period, week_of
from mqadmin.reports.set_report_mail import ADDRESSES_PERMISSION

# What is older has no samples any more.
HOT_WINDOW = timedelta(days=2)


@require_safe
def reports(request: HttpRequest, cluster: str) -> HttpResponse:
    """Lists the days that have a report, the latest first, and how far the job is."""
    shows = [Subscription(cluster, kinds=(ChangeKind.REPORTS,))]
    return live_page(
        request,
        "reports",
        lambda: _reports(cluster),
        shows=shows,
        cluster=cluster,
        section="reports",
        permissions=(ADDRESSES_PERMISSION,),
    )


def _reports(cluster: str) -> dict[str, Any]:
    head = selectors.cluster_head(cluster)
    days = report_selectors.DayReportRows(head).after(None, report_selectors.DAYS_SHOWN)
    runs = report_selectors.report_runs(head).after(None, report_selectors.RUNS_SHOWN)
    return {
        "head": head,
        "cluster": cluster,
        "now": timezone.now(),
        "days": days,
        "periods": _periods([report.day for report in days]),
        "runs": runs,
        "under_way": [(run, report_sentences.stage_text(run.stage)) for run in runs if run.is_under_way],
        "mail": _mail(head),
        "addresses_permission": ADDRESSES_PERMISSION,
        "missing": ", ".join(missing_packages()),
    }


def _mail(cluster: Cluster) -> list[tuple[str, list[str]]]:
    """Returns each language with those who get the mail of every night in it."""
    present = report_selectors.mail_recipients(cluster)
    return [(code, present.get(code, [])) for code, _name in settings.LANGUAGES]


def _periods(days: Sequence[date]) -> list[tuple[str, list[tuple[Period, str]]]]:
    """Returns the months and the weeks of these days, the latest first, each with its name."""
    months, weeks = (list(dict.fromkeys(map(of, days))) for of in (month_of, week_of))
    found = [
        (gettext("Months"), [(one, report_sentences.period_name(one)) for one in months]),
        (gettext("Weeks"), [(one, one.key) for one in weeks]),
    ]
    return found if days else []


@require_safe
@with_charts
def day_report(request: HttpRequest, cluster: str, day: str) -> HttpResponse:
    """Shows one day (2026-11-22), week (2026-W47) or month (2026-11): words, figures with their tables, the groups."""
    if (period := _period(day)) is not None:
        return _period_report(request, cluster, period)
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
        "table": report_tables.day_table(page.groups, page.report.day),
        **drawn(day_charts(page)),
        "week": week_of(page.report.day),
        "month": month_of(page.report.day),
    }
    return _uncached(render(request, "console/day_report.html", context))


def _period_report(request: HttpRequest, cluster: str, period: Period) -> HttpResponse:
    with or_404():
        page = period_page(selectors.cluster_head(cluster), period)
    context = {
        "here": cluster,
        "cluster": cluster,
        "section": "reports",
        "now": timezone.now(),
        "name": report_sentences.period_name(period),
        "title": report_sentences.period_title(page),
        "sentences": report_sentences.period_sentences(page),
        "page": page,
        "table": report_tables.period_table(page.shown, page.worst_days()),
        **drawn(period_charts(page)),
    }
    return _uncached(render(request, "console/period_report.html", context))


@require_safe
@with_charts
def group_day(request: HttpRequest, cluster: str, day: str, group: str) -> HttpResponse:
    """Shows one group on one day: its hours, what was unusual, and every figure."""
    with or_404():
        head = selectors.cluster_head(cluster)
        row = report_selectors.group_day(head, _read_day(day), group)
    context = {
        "here": cluster,
        "cluster": cluster,
        "section": "reports",
        "now": timezone.now(),
        "row": row,
        "anomalies": [report_sentences.anomaly_text(one) for one in row.anomalies],
        **drawn(group_day_charts(row)),
        "links": _moments(row),
    }
    return _uncached(render(request, "console/group_day.html", context))


def _moments(row: GroupDay) -> list[tuple[str, str]]:
    """Returns hours worth a look that the hot window still has, each with the moment at which its curve ends."""
    begin, _end = day_bounds(row.report.day)
    wanted = {hour for hour, *_ in row.anomalies} | ({row.worst_hour} if row.worst_hour is not None else set())
    ends = [(hour, begin + timedelta(hours=hour + 1)) for hour in sorted(wanted)]
    oldest = timezone.now() - HOT_WINDOW
    return [(f"{hour}:00", f"{end:%Y-%m-%dT%H:%M:%SZ}") for hour, end in ends if end > oldest]


@require_safe
def period_file(_request: HttpRequest, cluster: str, day: str) -> HttpResponse:
    """Sends the groups of a week or a month as Parquet."""
    period = _period(day)
    if period is None:
        raise Http404(f"{day} is no week and no month: it must be as in 2026-W47 or 2026-11")
    with or_404():
        page = period_page(selectors.cluster_head(cluster), period)
    written = parquet_files.period_file(page)
    if written is None:
        raise Http404("reports are not installed here: install requirements/reports.txt")
    response = HttpResponse(written, content_type=MEDIA_TYPE)
    response["Content-Disposition"] = f'attachment; filename="{cluster}-{period.key}.parquet"'
    return response


def _uncached(response: HttpResponse) -> HttpResponse:
    add_never_cache_headers(response)
    return response


def _period(text: str) -> Period | None:
    try:
        return read_period(text)
    except ValueError:
        return None


@require_safe
def day_report_file(_request: HttpRequest, cluster: str, day: str) -> FileResponse:
    """Sends the Parquet file of the groups of a day."""
    with or_404():
        report = report_selectors.day_report(selectors.cluster_head(cluster), _read_day(day))
    path = parquet_files.day_file(report)
    if path is None:
        raise Http404(f"the Parquet of {day} is not on this machine")
    return FileResponse(path.open("rb"), as_attachment=True, filename=f"{cluster}-{day}.parquet")


def _read_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise Http404(f"{text} is no day: it must be as in 2026-11-22") from error
