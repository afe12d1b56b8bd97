"""Data that comes when the report of its day is made: dead letters that are indexed late, what instances tell late.

Who appends it to the history notes it with the report before the file is in its place, so a process that is killed in
between costs a report that finds the same, never one that is missed. A scheduled look has such a report made again: one
run for all that came, at most one in AGAIN_AFTER, and none for days that are older than what is appended.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

from django.utils.translation import gettext as _

from mqadmin.clusters.models import Cluster
from mqadmin.reports import runs
from mqadmin.reports.models import DayReport, ReportRun

# What instances tell of an hour comes within four: after this most of a night's late data is there.
AGAIN_AFTER = timedelta(hours=6)
# The history is appended four days back.
DAYS_BACK = 5


def note(cluster: Cluster, day: date, now: datetime) -> None:
    """Notes that the history is about to have more of a day than its report; one of a day that is open is no matter."""
    DayReport.objects.filter(cluster=cluster, day=day, is_whole=True, late_at=None).update(late_at=now)


def ask(now: datetime) -> ReportRun | None:
    """Asks for one report that lacks later data, the oldest day first; None when none is due."""
    reports = DayReport.objects.filter(
        late_at__isnull=False, made_at__lte=now - AGAIN_AFTER, day__gte=now.date() - timedelta(days=DAYS_BACK)
    )
    for report in reports.select_related("cluster").order_by("day", "cluster__name"):
        name, day = report.cluster.name, report.day
        tried = ReportRun.objects.filter(cluster_name__in=["", name], since__lte=day, until__gte=day)
        if not tried.filter(asked_at__gt=now - AGAIN_AFTER).exists():
            remark = _("Data of this day came when its report was made: it is made again with it.")
            return runs.ask(name, day, day, now, remark=remark)
    return None
