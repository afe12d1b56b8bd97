"""`…/reports` of a cluster, and the groups of one day, week or month. A report is made by the action `make_report`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django.http import Http404

from mqadmin.api.listing import ListResource, described
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.reports import DayReportSerializer, GroupPeriodSerializer, GroupReportSerializer
from mqadmin.clusters import selectors
from mqadmin.reports import selectors as report_selectors
from mqadmin.reports.models import DayReport, GroupDay
from mqadmin.reports.period_figures import GroupPeriod, group_periods
from mqadmin.reports.periods import read_period


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
        try:
            day = date.fromisoformat(names["day"])
        except ValueError as error:
            raise Http404 from error
        return report_selectors.GroupDayRows(report_selectors.day_report(selectors.cluster_head(names["cluster"]), day))


@described("list_group_periods", "List the groups of a week's or a month's reports")
class GroupPeriods(ListResource):
    """The groups of a week (2026-W47) or a month (2026-11): the one over its objective for longest first."""

    row = GroupPeriodSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[GroupPeriod]:
        try:
            period = read_period(names["period"])
        except ValueError as error:
            raise Http404 from error
        groups = group_periods(selectors.cluster_head(names["cluster"]), period)
        return RowsInMemory(groups, lambda one: [-one.over_s, -one.lag_p95, one.group_name])
