"""`…/reports` of a cluster, the groups of one day, week or month; the runs that make reports, and mails about nights.

A report is made by the action `make_report`, and `set_report_mail` says who gets the mails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404, HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.access import role_on
from mqadmin.api.listing import ListQuery, ListResource, described
from mqadmin.api.problems import UNAVAILABLE, Problem
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.reports import (
    DayReportSerializer,
    GroupPeriodSerializer,
    GroupReportSerializer,
    HourReportSerializer,
    MailRecipientsSerializer,
    QueueReportSerializer,
    ReportMailSerializer,
    ReportRunSerializer,
)
from mqadmin.clusters import selectors
from mqadmin.clusters.models import ID_MAX, NAME_CHARS_MAX, Cluster
from mqadmin.people.roles import grants
from mqadmin.reports import parquet_files
from mqadmin.reports import selectors as report_selectors
from mqadmin.reports.models import DayReport, GroupDay, ReportMail, ReportRun
from mqadmin.reports.period_figures import GroupPeriod, group_periods, period_page
from mqadmin.reports.periods import Period, read_period
from mqadmin.reports.result_rows import BadResult, ResultRows, hour_rows, queue_rows
from mqadmin.reports.set_report_mail import ADDRESSES_PERMISSION

logger = logging.getLogger(__name__)


@described("list_reports", "List the reports of a cluster")
class Reports(ListResource):
    """Reports of days, the latest first."""

    row = DayReportSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[DayReport]:
        return report_selectors.DayReportRows(selectors.cluster_head(names["cluster"]))


@described("list_group_reports", "List the groups of a day's report")
class GroupReports(ListResource):
    """The groups of a day, as in 2026-11-22: the one over its objective for longest first."""

    row = GroupReportSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[GroupDay]:
        return report_selectors.GroupDayRows(_report(names["cluster"], names["day"]))


class RowsOfGroupQuery(ListQuery):
    """All rows of a day, or those of one group."""

    group = serializers.CharField(
        max_length=NAME_CHARS_MAX, default="", allow_blank=True, help_text="Those of this group alone."
    )


@described("list_queue_reports", "List the queues of a day's report")
class QueueReports(ListResource):
    """The queues of a day, the one with most lag over that of an even one of its topic first.

    404 where its Parquet is not on this machine, or the packages that read it are not installed; 503 where it is
    damaged.
    """

    row = QueueReportSerializer
    query = RowsOfGroupQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[dict[str, Any]]:
        return _rows(queue_rows, _report(names["cluster"], names["day"]), parquet_files.QUEUES, query["group"])


@described("list_hour_reports", "List the hours of a day's report")
class HourReports(ListResource):
    """The hours of the groups of a day, group by group: what the heat map and the ribbons of a page draw, and more.

    404 where its Parquet is not on this machine, or the packages that read it are not installed; 503 where it is
    damaged.
    """

    row = HourReportSerializer
    query = RowsOfGroupQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[dict[str, Any]]:
        return _rows(hour_rows, _report(names["cluster"], names["day"]), parquet_files.HOURS, query["group"])


@described("list_group_periods", "List the groups of a week's or a month's reports")
class GroupPeriods(ListResource):
    """The groups of a week (2026-W47) or a month (2026-11): the one over its objective for longest first."""

    row = GroupPeriodSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[GroupPeriod]:
        groups = group_periods(selectors.cluster_head(names["cluster"]), _period(names["period"]))
        return RowsInMemory(groups, lambda one: [-one.over_s, -one.lag_p95, one.group_name])


class GroupReportsFile(Resource):
    """The groups of a day as Parquet, with the columns that Spark wrote."""

    @extend_schema(
        operation_id="get_group_reports_file",
        summary="Get the groups of a day's report as Parquet",
        responses={(200, parquet_files.MEDIA_TYPE): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, cluster: str, day: str) -> FileResponse:
        return _sent(_file(_report(cluster, day), parquet_files.GROUPS), f"{cluster}-{day}.parquet")


class QueueReportsFile(Resource):
    """The queues of a day as Parquet, with the columns that Spark wrote."""

    @extend_schema(
        operation_id="get_queue_reports_file",
        summary="Get the queues of a day's report as Parquet",
        responses={(200, parquet_files.MEDIA_TYPE): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, cluster: str, day: str) -> FileResponse:
        return _sent(_file(_report(cluster, day), parquet_files.QUEUES), f"{cluster}-{day}-queues.parquet")


class HourReportsFile(Resource):
    """The hours of the groups of a day as Parquet, with the columns that Spark wrote: times in milliseconds."""

    @extend_schema(
        operation_id="get_hour_reports_file",
        summary="Get the hours of a day's report as Parquet",
        responses={(200, parquet_files.MEDIA_TYPE): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, cluster: str, day: str) -> FileResponse:
        return _sent(_file(_report(cluster, day), parquet_files.HOURS), f"{cluster}-{day}-hours.parquet")


class GroupPeriodsFile(Resource):
    """The groups of a week or a month as Parquet."""

    @extend_schema(
        operation_id="get_group_periods_file",
        summary="Get the groups of a week's or a month's reports as Parquet",
        responses={(200, parquet_files.MEDIA_TYPE): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, cluster: str, period: str) -> HttpResponse:
        written = parquet_files.period_file(period_page(selectors.cluster_head(cluster), _period(period)))
        if written is None:
            raise Http404
        headers = {"Content-Disposition": f'attachment; filename="{cluster}-{period}.parquet"'}
        return HttpResponse(written, content_type=parquet_files.MEDIA_TYPE, headers=headers)


@described("list_report_runs", "List the runs that make reports")
class ReportRuns(ListResource):
    """Runs that were about the cluster, or about all, the latest first; the latest 200 are kept."""

    row = ReportRunSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[ReportRun]:
        return report_selectors.report_runs(selectors.cluster_head(names["cluster"]))


class ReportRunDetail(Resource):
    """A run: how far it is, and what became of it."""

    @extend_schema(operation_id="get_report_run", summary="Get a run that makes reports", responses=ReportRunSerializer)
    def get(self, request: Request, cluster: str, run: int) -> Response:
        if run > ID_MAX:
            raise Http404
        found = report_selectors.report_run(selectors.cluster_head(cluster), run)
        return Response(ReportRunSerializer(found).data)


@described("list_report_mails", "List the mails about nights")
class ReportMails(ListResource):
    """What became of the mail of each night, in each language, the latest night first; they are kept for 62 days.

    To whom they went is another list, for those who may set it.
    """

    row = ReportMailSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[ReportMail]:
        found = report_selectors.report_mails(selectors.cluster_head(names["cluster"]))
        return RowsInMemory(found, lambda mail: [-mail.day.toordinal(), mail.language])


@described("list_report_recipients", "List who gets the mail of every night")
class ReportRecipients(ListResource):
    """Addresses by language, for those who may set them."""

    row = MailRecipientsSerializer

    def live_groups(self, **names: str) -> Sequence[str]:
        """None: nothing is published when they are set."""
        return []

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[dict[str, Any]]:
        head = _head_for_addresses(self.request, names["cluster"])
        present = report_selectors.mail_recipients(head)
        return _addresses({code: present.get(code, []) for code, _name in settings.LANGUAGES})


@described("list_report_mail_recipients", "List who got the mail of a night")
class ReportMailRecipients(ListResource):
    """To which addresses the mail about a day went, by language, for those who may set them; kept for 62 days."""

    row = MailRecipientsSerializer

    def live_groups(self, **names: str) -> Sequence[str]:
        """None: an answer with addresses is not called unchanged to somebody who lost the right to them."""
        return []

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[dict[str, Any]]:
        head = _head_for_addresses(self.request, names["cluster"])
        return _addresses(report_selectors.mail_recipients_on(head, _day(names["day"])))


def _head_for_addresses(request: Request, cluster: str) -> Cluster:
    """Raises Cluster.DoesNotExist, and PermissionDenied for whoever may not set who gets mails."""
    head = selectors.cluster_head(cluster)
    role = role_on(request, head)
    if role is None or not grants(role, ADDRESSES_PERMISSION):
        raise PermissionDenied
    return head


def _addresses(by_language: Mapping[str, Sequence[str]]) -> Rows[dict[str, Any]]:
    rows = [{"language": code, "recipients": addresses} for code, addresses in by_language.items()]
    return RowsInMemory(rows, lambda row: [row["language"]])


def _report(cluster: str, day: str) -> DayReport:
    """Raises Http404, DayReport.DoesNotExist."""
    return report_selectors.day_report(selectors.cluster_head(cluster), _day(day))


def _file(report: DayReport, table: str) -> Path:
    """Raises Http404 where the file is not on this machine."""
    path = parquet_files.day_file(report, table)
    if path is None:
        raise Http404
    return path


def _rows(read: Callable[[Path, str], ResultRows | None], report: DayReport, table: str, group: str) -> ResultRows:
    """Raises Http404 where the file is not on this machine, or nothing here reads it; Problem where it is damaged."""
    path = _file(report, table)
    try:
        found = read(path, group)
    except BadResult as error:
        logger.warning("%s cannot be read: %s", path, error)
        words = _("%(path)s cannot be read: make the report of %(day)s again.")
        raise Problem(UNAVAILABLE, words % {"path": path, "day": report.day.isoformat()}) from error
    if found is None:
        raise Http404
    return found


def _sent(path: Path, name: str) -> FileResponse:
    return FileResponse(path.open("rb"), as_attachment=True, filename=name, content_type=parquet_files.MEDIA_TYPE)


def _day(text: str) -> date:
    """Raises Http404."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise Http404 from error


def _period(text: str) -> Period:
    """Raises Http404."""
    try:
        return read_period(text)
    except ValueError as error:
        raise Http404 from error
