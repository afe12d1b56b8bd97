"""What pages and REST read of reports: days, the groups of a day with the worst first, and the latest runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import F, OuterRef, Prefetch, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.newest_rows import NewestRows
from mqadmin.reports.models import DayReport, GroupDay, MailRecipients, ReportMail, ReportRun

# Of the list of days: two months. An older one has its address.
DAYS_SHOWN = 62
RUNS_SHOWN = 5
WEEK = timedelta(days=7)
# Groups on a day's page: what a person reads. REST has all.
GROUPS_SHOWN = 50
# Rows of the heat map: more cannot be told apart on a phone.
GROUPS_DRAWN = 30
# Of one figure: what a chart shows, and more than sentences name.
GROUPS_CHOSEN = 12
# "Worse" is half as much again as a week before, and by this much more: less is noise. The most urgent figure first.
WORSE_FACTOR = 1.5
WORSE_FLOORS: Mapping[str, int] = {"over_s": 60, "dead": 10, "retried": 100, "lag_p95": 100}


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
class Worse:
    """A group that got worse: by which figure of `WORSE_FLOORS`, what that is, and what it was a week before."""

    group_name: str
    figure: str
    now: float
    before: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPage:
    """One day: its report, that of the day before (None: there is none), and groups, each list out of all of the day.

    `groups`: the one over its objective for longest first. The others begin with what is most by their own figure:
    `lagging` (95th percentile), `grown` (messages that came in, of those with a week before), `retried` (retries and
    dead letters), `hot` (lag of those with a hot queue), `skewed` (the skew of their lag), `uneven` (messages that came
    in, of those with uneven keys), `deadly` (dead letters), `unusual` (over its objective), `in_conflict` (time),
    `short` (messages expected).
    """

    report: DayReport
    before: DayReport | None
    groups: tuple[GroupDay, ...]
    worse: tuple[Worse, ...]
    quiet: tuple[GroupDay, ...]
    abandoned: tuple[GroupDay, ...]
    unusual: tuple[GroupDay, ...]
    lagging: tuple[GroupDay, ...]
    grown: tuple[GroupDay, ...]
    retried: tuple[GroupDay, ...]
    deadly: tuple[GroupDay, ...]
    hot: tuple[GroupDay, ...]
    skewed: tuple[GroupDay, ...]
    uneven: tuple[GroupDay, ...]
    in_conflict: tuple[GroupDay, ...]
    short: tuple[GroupDay, ...]


def day_report(cluster: Cluster, day: date) -> DayReport:
    """Raises DayReport.DoesNotExist."""
    return DayReport.objects.get(cluster=cluster, day=day)


def group_day(cluster: Cluster, day: date, group: str) -> GroupDay:
    """Raises GroupDay.DoesNotExist."""
    return GroupDay.objects.select_related("report").get(report__cluster=cluster, report__day=day, group_name=group)


def day_page(cluster: Cluster, day: date) -> DayPage:
    """Returns what a day's page shows, in 20 queries. Raises DayReport.DoesNotExist.

    All but the worst groups have no index of their own: a page is read seldom, and rows are written by the thousand.
    """
    report = day_report(cluster, day)
    rows = GroupDay.objects.filter(report=report)

    def most(found: QuerySet[GroupDay], *figures: str) -> tuple[GroupDay, ...]:
        order = [F(figure).desc() for figure in figures]
        return tuple(found.order_by(*order, "group_name")[:GROUPS_CHOSEN])

    failed = rows.annotate(failed=F("retried") + F("dead"))
    is_short = Q(forecast_high_s__gt=Coalesce("most_out_s", Value(0.0)))
    return DayPage(
        report=report,
        before=DayReport.objects.filter(cluster=cluster, day=day - timedelta(days=1)).first(),
        groups=tuple(_worst_first(rows)[:GROUPS_SHOWN]),
        worse=_worse(rows, DayReport.objects.filter(cluster=cluster, day=day - WEEK).first()),
        quiet=tuple(_worst_first(rows.filter(is_quiet=True, is_abandoned=False))[:GROUPS_SHOWN]),
        abandoned=tuple(_worst_first(rows.filter(is_abandoned=True))[:GROUPS_SHOWN]),
        unusual=most(rows.exclude(anomalies=[]), "over_s", "lag_p95"),
        lagging=most(rows.filter(lag_max__gt=0), "lag_p95"),
        grown=most(rows.filter(produced_before__isnull=False), "produced"),
        retried=most(failed.filter(failed__gt=0), "failed"),
        deadly=most(rows.filter(dead__gt=0), "dead"),
        hot=most(rows.filter(skew__gt=0, lag_max__gt=0), "lag_p95"),
        skewed=most(rows.filter(skew__gt=0), "skew"),
        uneven=most(rows.filter(produced_skew__gt=0), "produced"),
        in_conflict=most(rows.filter(conflict_s__gt=0), "conflict_s"),
        short=most(rows.filter(is_short), "forecast_high_s"),
    )


def _worse(rows: QuerySet[GroupDay], week_before: DayReport | None) -> tuple[Worse, ...]:
    """Returns the groups that got worse, by the most urgent figure first and in it by how much; each group once."""
    was = GroupDay.objects.filter(report=week_before, group_name=OuterRef("group_name"))
    found: dict[str, Worse] = {}
    for figure, floor in WORSE_FLOORS.items():
        # What retries were is in that day's report alone.
        before = Subquery(was.values(figure)) if figure == "retried" else F(f"{figure}_before")
        measured = rows.annotate(now=F(figure), was=before).annotate(more=F("now") - F("was"))
        worse = measured.filter(more__gte=floor, now__gt=F("was") * WORSE_FACTOR)
        ordered = worse.order_by(F("more").desc(), "group_name").values_list("group_name", "now", "was")
        for name, now, then in ordered[:GROUPS_CHOSEN]:
            found.setdefault(name, Worse(name, figure, now, then))
    return tuple(found.values())


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
