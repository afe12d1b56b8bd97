"""What pages and REST read of reports: days, the groups of a day with the worst first, and the latest runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import F, Prefetch, Q, QuerySet

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.reports.models import DayReport, GroupDay, MailRecipients, ReportMail, ReportRun

# Of the list of days: two months. An older one has its address.
DAYS_SHOWN = 62
RUNS_SHOWN = 5
# Groups on a day's page: what a person reads. REST has all.
GROUPS_SHOWN = 50
# Rows of the heat map: more cannot be told apart on a phone.
GROUPS_DRAWN = 30
# "Worse" is half as much again and not noise.
WORSE_FACTOR = 1.5


@dataclass(frozen=True, slots=True)
class GroupDayRows:
    """The groups of a day, the one over its objective for longest first."""

    report: DayReport

    def after(self, position: Sequence[Any] | None, size: int) -> list[GroupDay]:
        rows = GroupDay.objects.filter(report=self.report)
        if position is not None:
            over_s, lag_p95, name = position
            later = Q(lag_p95__lt=lag_p95) | Q(lag_p95=lag_p95, group_name__gt=name)
            rows = rows.filter(Q(over_s__lt=over_s) | Q(over_s=over_s) & later)
        return list(_worst_first(rows)[:size])

    def position(self, row: GroupDay) -> list[Any]:
        return [row.over_s, row.lag_p95, row.group_name]

    def total_count(self) -> int:
        return self.report.group_count


@dataclass(frozen=True, slots=True)
class DayReportRows:
    """The reports of a cluster, the latest day first."""

    cluster: Cluster

    def after(self, position: Sequence[Any] | None, size: int) -> list[DayReport]:
        rows = DayReport.objects.filter(cluster=self.cluster)
        if position is not None:
            rows = rows.filter(day__lt=date.fromisoformat(position[0]))
        return list(rows.order_by("-day")[:size])

    def position(self, row: DayReport) -> list[Any]:
        return [row.day.isoformat()]

    def total_count(self) -> int:
        return DayReport.objects.filter(cluster=self.cluster).count()


@dataclass(frozen=True, slots=True)
class DayPage:
    """One day: its report, that of the day before (None: there is none), its worst groups, and which got worse."""

    report: DayReport
    before: DayReport | None
    groups: tuple[GroupDay, ...]
    worse: tuple[GroupDay, ...]
    quiet: tuple[GroupDay, ...]
    abandoned: tuple[GroupDay, ...]


def day_report(cluster: Cluster, day: date) -> DayReport:
    """Raises DayReport.DoesNotExist."""
    return DayReport.objects.get(cluster=cluster, day=day)


def group_day(cluster: Cluster, day: date, group: str) -> GroupDay:
    """Raises GroupDay.DoesNotExist."""
    return GroupDay.objects.select_related("report").get(report__cluster=cluster, report__day=day, group_name=group)


def day_page(cluster: Cluster, day: date) -> DayPage:
    """Returns what a day's page shows, in six queries. Raises DayReport.DoesNotExist."""
    report = day_report(cluster, day)
    rows = GroupDay.objects.filter(report=report)
    worse = rows.filter(over_s_before__isnull=False, over_s__gt=F("over_s_before") * WORSE_FACTOR)
    return DayPage(
        report=report,
        before=DayReport.objects.filter(cluster=cluster, day=day - timedelta(days=1)).first(),
        groups=tuple(_worst_first(rows)[:GROUPS_SHOWN]),
        worse=tuple(_worst_first(worse)[:GROUPS_SHOWN]),
        quiet=tuple(_worst_first(rows.filter(is_quiet=True, is_abandoned=False))[:GROUPS_SHOWN]),
        abandoned=tuple(_worst_first(rows.filter(is_abandoned=True))[:GROUPS_SHOWN]),
    )


def report_runs(cluster: Cluster) -> NewestRows[ReportRun]:
    """Returns runs that were about the cluster, or about all, the latest first; `mails` are those about the cluster."""
    rows = ReportRun.objects.filter(cluster_name__in=["", cluster.name])
    mails = ReportMail.objects.filter(cluster=cluster).order_by("language")
    return NewestRows(rows.prefetch_related(Prefetch("mails", mails)), "asked_at")


def report_mails(cluster: Cluster) -> list[ReportMail]:
    """Returns the mails about a cluster: of each night one a language, as long as they are kept (`mailing.KEPT`)."""
    return list(ReportMail.objects.filter(cluster=cluster).order_by("-day", "language"))


def report_run(cluster: Cluster, number: int) -> ReportRun:
    """Returns a run that was about the cluster, or about all. Raises ReportRun.DoesNotExist."""
    return report_runs(cluster).rows.get(pk=number)


def mail_recipients(cluster: Cluster) -> dict[str, list[str]]:
    """Returns who gets the mail of each night, by language."""
    rows = MailRecipients.objects.filter(cluster=cluster).order_by("language")
    return {row.language: row.addresses.split() for row in rows}


def mail_recipients_on(cluster: Cluster, day: date) -> dict[str, list[str]]:
    """Returns to whom the mails about a day went, by language; as long as these are kept (`mailing.KEPT`)."""
    mails = ReportMail.objects.filter(cluster=cluster, day=day).order_by("language")
    return {mail.language: mail.addresses for mail in mails}


def _worst_first(rows: QuerySet[GroupDay]) -> QuerySet[GroupDay]:
    return rows.order_by("-over_s", "-lag_p95", "group_name")
