"""Alerts, rules, channels, silences and deliveries for pages and REST. Each in a bounded number of queries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce

from mqadmin.alerts.conditions import Subject
from mqadmin.alerts.models import Alert, AlertChannel, AlertDelivery, AlertNotice, AlertRule, AlertSilence
from mqadmin.alerts.stepping import State
from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.newest_rows import NewestRows

# Of a page; REST has all.
PRESENT_MAX = 200
# Of the overview, and of a group's page.
FIRING_MAX = 20
# Of one page of deliveries.
NAMES_MAX = 5000
# Among which the last of each channel is looked for.
LATEST_MAX = 1000


@dataclass(frozen=True, slots=True)
class Present:
    """What fires and what is pending, the latest first, PRESENT_MAX at most; the counts are of all."""

    alerts: Sequence[Alert]
    firing_count: int
    pending_count: int

    @property
    def rest(self) -> int:
        return self.firing_count + self.pending_count - len(self.alerts)


def present(clusters: QuerySet[Cluster], cluster: str = "") -> Present:
    """Returns what there is now: what fires before what is pending, what nobody looks after first."""
    rows = _of(clusters, cluster).exclude(state=State.RESOLVED)
    counts = rows.order_by().aggregate(
        firing=Count("pk", filter=Q(state=State.FIRING)), pending=Count("pk", filter=Q(state=State.PENDING))
    )
    ordered = rows.order_by("state", "is_silenced", Coalesce("fired_at", "since").desc(), "-pk")
    return Present(list(ordered.select_related("rule", "cluster")[:PRESENT_MAX]), counts["firing"], counts["pending"])


def firing(clusters: QuerySet[Cluster]) -> list[Alert]:
    """Returns what fires and is neither silenced nor acknowledged, the latest first."""
    rows = _of(clusters).filter(state=State.FIRING, is_silenced=False, acknowledged_at=None)
    return list(rows.select_related("rule", "cluster").order_by("-fired_at", "-pk")[:FIRING_MAX])


def firing_count(clusters: QuerySet[Cluster]) -> int:
    return _of(clusters).filter(state=State.FIRING, is_silenced=False, acknowledged_at=None).count()


def of_group(cluster: Cluster, group: str) -> list[Alert]:
    """Returns what fires of a group."""
    rows = Alert.objects.filter(cluster=cluster, name=group, state=State.FIRING, subject=Subject.GROUP)
    return list(rows.select_related("rule", "cluster").order_by("-fired_at")[:FIRING_MAX])


def alert(cluster: Cluster, number: int) -> Alert:
    """Raises Alert.DoesNotExist."""
    return Alert.objects.select_related("rule", "cluster").get(cluster=cluster, pk=number)


def fired(clusters: QuerySet[Cluster], cluster: str = "", state: str = "") -> NewestRows[Alert]:
    """Returns all that ever fired, the latest first."""
    rows = _of(clusters, cluster).filter(fired_at__isnull=False).select_related("rule", "cluster")
    return NewestRows(rows.filter(state=state) if state else rows, "fired_at")


def rules() -> list[AlertRule]:
    """Returns all rules by name, each with its channels, and how many of its alerts fire as `firing_count`."""
    rows = AlertRule.objects.prefetch_related("channels", "escalation_channels").order_by("name")
    return list(rows.annotate(firing_count=Count("alerts", filter=Q(alerts__state=State.FIRING))))


@dataclass(frozen=True, slots=True)
class ChannelLine:
    """A channel with its last delivery, and the rules that tell by it."""

    channel: AlertChannel
    last: AlertDelivery | None
    rules: tuple[str, ...]


def channels() -> list[ChannelLine]:
    rows = list(AlertChannel.objects.prefetch_related("rules", "escalating_rules").order_by("name"))
    latest = AlertDelivery.objects.filter(channel__in=rows).order_by("-made_at", "-pk").values_list("pk", "channel")
    last: dict[int, int] = {}
    for pk, channel in latest[:LATEST_MAX]:
        last.setdefault(channel, pk)
    deliveries = AlertDelivery.objects.in_bulk(list(last.values()))
    return [
        ChannelLine(
            row,
            deliveries.get(last.get(row.pk, 0)),
            tuple(sorted({one.name for one in (*row.rules.all(), *row.escalating_rules.all())})),
        )
        for row in rows
    ]


def silences(clusters: QuerySet[Cluster], now: datetime) -> list[AlertSilence]:
    """Returns the silences that have not ended."""
    rows = AlertSilence.objects.filter(Q(ends_at=None) | Q(ends_at__gt=now), cluster__in=clusters)
    return list(rows.select_related("cluster").order_by("cluster__name", "name"))


def deliveries(clusters: QuerySet[Cluster], *, with_tests: bool) -> NewestRows[AlertDelivery]:
    """Returns what was told of these clusters, the latest first; tests are of none."""
    of_clusters = Q(notice__cluster__in=clusters)
    rows = AlertDelivery.objects.filter(of_clusters | Q(notice__cluster=None) if with_tests else of_clusters)
    return NewestRows(rows.select_related("notice__cluster", "channel"), "made_at")


def names_of(deliveries: Collection[AlertDelivery], most: int = 3) -> dict[int, list[str]]:
    """Returns the names of the first things that each was about, by its key."""
    through = AlertNotice.alerts.through
    notices = {one.notice_id for one in deliveries}
    rows = through.objects.filter(alertnotice__in=notices).order_by("alertnotice", "alert__name")
    found: dict[int, list[str]] = {}
    named = rows.values_list("alertnotice", "alert__name", "alert__cluster__name")
    for notice, name, cluster in named[:NAMES_MAX]:
        found.setdefault(notice, []).append(name or cluster)
    return {one.pk: found.get(one.notice_id, [])[: most + 1] for one in deliveries}


def _of(clusters: QuerySet[Cluster], cluster: str = "") -> QuerySet[Alert]:
    rows = Alert.objects.filter(cluster__in=clusters)
    return rows.filter(cluster__name=cluster) if cluster else rows
