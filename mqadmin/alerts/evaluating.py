"""One look at all rules: what is observed is read, what fires and resolves is written, and what is told of it.

Celery's beat asks for a look every few seconds; whoever takes the turn (`AlertTurn`) looks alone, and rows say what
was before. So a worker that ends in a look leaves the next one everything as it was: all that a look writes is one
transaction. The unique constraint of `Alert` holds even where two looked at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max, Q

from mqadmin.alerts import noticing
from mqadmin.alerts.conditions import About, Condition, Facts, Subject, matches, read
from mqadmin.alerts.facts import observe
from mqadmin.alerts.models import Alert, AlertDelivery, AlertNotice, AlertRule, AlertSilence, AlertTurn
from mqadmin.alerts.noticing import Key, Notice, NoticeKind
from mqadmin.alerts.signals import AlertsChanged, AlertsTurned, AlertTurning, TurnedAlert, alerts_changed, alerts_turned
from mqadmin.alerts.silencing import Silence, silenced
from mqadmin.alerts.stepping import State, Timing, Track, step
from mqadmin.clusters.bulk import update
from mqadmin.clusters.models import Cluster

logger = logging.getLogger(__name__)

EVERY_S = 10
# Who took the turn and says no more has lost it. A look at 10,000 groups takes seconds.
TAKEN_FOR = timedelta(seconds=60)
# Nobody looked for longer: then what was pending begins anew.
GAP_AFTER = timedelta(seconds=6 * EVERY_S)
# Alerts that begin in one look; the others begin in the next ones.
NEW_MAX = 2000
# Resolved ones that are told in one look.
OVER_MAX = 2000
_BATCH = 500
# A figure that changed by less is not written again.
_NOTABLE = 0.25
_WRITTEN = ("state", "since", "fired_at", "calm_since", "resolved_at", "is_silenced", "reading")

Place = tuple[int, int, str]


@dataclass(slots=True)
class Found:
    """What a look is to write."""

    made: list[Alert] = field(default_factory=list)
    changed: dict[int, Alert] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)
    # Of what fires, began or ended firing: cluster's name → names of groups.
    shown: dict[str, set[str]] = field(default_factory=dict)

    def show(self, cluster: str, alert: Alert) -> None:
        names = self.shown.setdefault(cluster, set())
        if alert.subject == Subject.GROUP:
            names.add(alert.name)


def evaluate(now: datetime) -> bool:
    """Looks at all rules that run; returns False where somebody else does at this moment."""
    AlertTurn.objects.get_or_create(name=AlertTurn.NAME)
    turn = AlertTurn.objects.filter(Q(taken_until=None) | Q(taken_until__lte=now), name=AlertTurn.NAME)
    if not turn.update(taken_until=now + TAKEN_FOR):
        return False
    try:
        _look(now)
    finally:
        AlertTurn.objects.filter(name=AlertTurn.NAME, taken_until=now + TAKEN_FOR).update(taken_until=None)
    return True


def _look(now: datetime) -> None:
    looked_at = AlertTurn.objects.values_list("looked_at", flat=True).get(name=AlertTurn.NAME)
    rules = list(AlertRule.objects.filter(is_running=True).prefetch_related("channels", "escalation_channels"))
    conditions = {rule.pk: condition_of(rule) for rule in rules}
    observed = observe(conditions.values(), now)
    present = {(one.rule_id, one.cluster_id, one.name): one for one in Alert.objects.exclude(state=State.RESOLVED)}
    found = Found()
    is_gap = looked_at is None or now - looked_at > GAP_AFTER
    for rule in rules:
        condition = conditions[rule.pk]
        for name, things in observed.by_subject.get(condition.subject, {}).items():
            if matches(condition.clusters, name):
                _judge(rule, condition, observed.clusters[name], things, present, found, now, is_gap=is_gap)
    # Of what is left its rule is paused, or about something else now, or the thing is gone.
    names = {cluster.pk: name for name, cluster in observed.clusters.items()}
    for alert in present.values():
        _end(alert, names[alert.cluster_id], found, now)
    with transaction.atomic():
        _write(found)
        fired = _tell({rule.pk: rule for rule in rules}, names, found, now)
        AlertTurn.objects.filter(name=AlertTurn.NAME).update(looked_at=now)
        for cluster, groups in found.shown.items():
            alerts_changed.send(sender=Alert, event=AlertsChanged(cluster, sorted(groups)))
        resolved = [alert for alert in found.changed.values() if alert.state == State.RESOLVED]
        _publish_turned(fired, resolved, names, now)


def condition_of(rule: AlertRule) -> Condition:
    return Condition(
        about=About(rule.about),
        clusters=rule.clusters,
        names=rule.names,
        verdicts=frozenset(rule.verdicts),
        threshold=rule.threshold,
        window_minutes=rule.window_minutes,
    )


def _judge(
    rule: AlertRule,
    condition: Condition,
    cluster: Cluster,
    things: Iterable[Facts],
    present: dict[Place, Alert],
    found: Found,
    now: datetime,
    *,
    is_gap: bool,
) -> None:
    timing = Timing(rule.for_s, rule.resolve_s)
    for facts in things:
        if not condition.is_about(facts.cluster, facts.name):
            continue
        alert = present.pop((rule.pk, cluster.pk, facts.name), None)
        reading = read(condition, facts, is_firing=alert is not None and alert.state == State.FIRING)
        if alert is None and not reading.holds:
            continue
        was = _track(alert) if alert is not None else None
        track = step(was, reading.holds, timing, now, is_gap=is_gap)
        if alert is None:
            if track is not None and len(found.made) < NEW_MAX:
                made = Alert(
                    rule=rule, cluster=cluster, subject=condition.subject, name=facts.name, reading=reading.said
                )
                _follow(made, track)
                found.made.append(made)
                found.show(cluster.name, made)
        elif track is None:
            found.gone.append(alert.pk)
            found.show(cluster.name, alert)
        else:
            is_read_anew = bool(reading.holds) and is_notable(alert.reading, reading.said)
            if is_read_anew:
                alert.reading = dict(reading.said)
            if track != was or is_read_anew:
                if track.state != alert.state or is_read_anew:
                    found.show(cluster.name, alert)
                _follow(alert, track)
                found.changed[alert.pk] = alert


def _end(alert: Alert, cluster: str, found: Found, now: datetime) -> None:
    found.show(cluster, alert)
    if alert.state == State.PENDING:
        found.gone.append(alert.pk)
        return
    alert.state, alert.resolved_at = State.RESOLVED, now
    found.changed[alert.pk] = alert


def _track(alert: Alert) -> Track:
    return Track(State(alert.state), alert.since, alert.fired_at, alert.calm_since, alert.resolved_at)


def _follow(alert: Alert, track: Track) -> None:
    alert.state, alert.since, alert.fired_at = track.state, track.since, track.fired_at
    alert.calm_since, alert.resolved_at = track.calm_since, track.resolved_at


def is_notable(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Tells whether a reading says something else than before, or a figure that is a quarter off."""
    if any(before.get(name) != after.get(name) for name in ("verdict", "rule", "threshold", "error", "conflict")):
        return True
    if _findings(before) != _findings(after):
        return True
    was, value = before.get("value"), after.get("value")
    if was is None or value is None:
        return was is not value
    return bool(abs(value - was) > _NOTABLE * max(abs(was), 1))


def _findings(reading: Mapping[str, Any]) -> list[str]:
    return [one["verdict"] for one in reading.get("findings", ())]


def _write(found: Found) -> None:
    Alert.objects.bulk_create(found.made, batch_size=_BATCH, ignore_conflicts=True)
    update(Alert, list(found.changed.values()), _WRITTEN)
    for start in range(0, len(found.gone), _BATCH):
        Alert.objects.filter(pk__in=found.gone[start : start + _BATCH], state=State.PENDING).delete()


def _publish_turned(fired: Sequence[Alert], resolved: Sequence[Alert], names: Mapping[int, str], now: datetime) -> None:
    rules = AlertRule.objects.in_bulk({alert.rule_id for alert in resolved})
    by_cluster: dict[str, list[TurnedAlert]] = {}
    for alert in resolved:
        if alert.rule_id not in rules:
            # Its rule was deleted in between, which told this.
            continue
        turned = _turned(alert, rules[alert.rule_id], AlertTurning.RESOLVED, now)
        by_cluster.setdefault(names[alert.cluster_id], []).append(turned)
    for alert in fired:
        turned = _turned(alert, alert.rule, AlertTurning.FIRED, now)
        by_cluster.setdefault(names[alert.cluster_id], []).append(turned)
    for cluster, some in by_cluster.items():
        alerts_turned.send(sender=Alert, event=AlertsTurned(cluster, some))


def _turned(alert: Alert, rule: AlertRule, turning: AlertTurning, now: datetime, by: str = "") -> TurnedAlert:
    return TurnedAlert(
        id=alert.pk,
        turning=turning,
        rule=rule.name,
        about=rule.about,
        subject=alert.subject,
        name=alert.name,
        at=now,
        since=alert.since,
        is_silenced=alert.is_silenced,
        reading=dict(alert.reading),
        by=by,
    )


def _tell(rules: Mapping[int, AlertRule], names: Mapping[int, str], found: Found, now: datetime) -> list[Alert]:
    """Writes what is silenced, what is told, and the deliveries of it; returns what fired in this look."""
    # In the order in which they began, and so of a cluster's groups by their names.
    firing = list(Alert.objects.filter(state=State.FIRING).select_related("rule").order_by("pk"))
    silences = silences_now(names, now)
    turned = []
    for alert in firing:
        is_silent = silenced(silences, names[alert.cluster_id], alert.name, alert.rule.name, now)
        if is_silent != alert.is_silenced:
            alert.is_silenced = is_silent
            turned.append(alert)
            found.show(names[alert.cluster_id], alert)
    update(Alert, turned, ["is_silenced"])
    untold = Alert.objects.filter(state=State.RESOLVED, told_at__isnull=False, resolve_told_at=None)
    over = list(untold.select_related("rule").order_by("resolved_at")[:OVER_MAX])
    alerts = [_alert(one) for one in (*firing, *over)]
    keys = {one.key for one in alerts}
    for notice in noticing.notices(alerts, _last_told(keys, now), now):
        rule_id, cluster_id = notice.key
        rule = rules.get(rule_id) or AlertRule.objects.get(pk=rule_id)
        if _note(rule, cluster_id, notice, now):
            found.shown.setdefault(names[cluster_id], set())
    # As the rows have it: of two that looked at once, one wrote them.
    return [alert for alert in firing if alert.fired_at == now]


def silences_now(names: Mapping[int, str], now: datetime) -> list[Silence]:
    """Returns the silences that hold, or hold weekly."""
    rows = AlertSilence.objects.filter(Q(ends_at=None) | Q(ends_at__gt=now), cluster__in=names, starts_at__lte=now)
    return [silence_of(row, names[row.cluster_id]) for row in rows]


def silence_of(row: AlertSilence, cluster: str) -> Silence:
    return Silence(
        cluster=cluster,
        names=row.names,
        rules=row.rules,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        weekdays=frozenset(row.weekdays),
        from_minute=row.from_minute,
        to_minute=row.to_minute,
        zone=row.zone,
    )


def _alert(row: Alert) -> noticing.Alert:
    minutes = row.rule.escalate_minutes
    return noticing.Alert(
        id=row.pk,
        key=(row.rule_id, row.cluster_id),
        is_firing=row.state == State.FIRING,
        is_silent=row.is_silenced,
        told_at=row.told_at,
        resolve_told_at=row.resolve_told_at,
        acknowledged_at=row.acknowledged_at,
        escalated_at=row.escalated_at,
        escalate_after=timedelta(minutes=minutes) if minutes else None,
    )


def _last_told(keys: Iterable[Key], now: datetime) -> dict[Key, datetime]:
    """Returns when the receivers of the rule were told last: those of an escalation are others."""
    wanted = set(keys)
    rows = AlertNotice.objects.filter(made_at__gt=now - noticing.GATHER_FOR, rule__isnull=False).order_by()
    rows = rows.exclude(kind=NoticeKind.ESCALATED)
    told = rows.values_list("rule", "cluster").annotate(last=Max("made_at"))
    return {(rule, cluster): last for rule, cluster, last in told if (rule, cluster) in wanted}


_TOLD_COLUMNS: Mapping[NoticeKind, str] = {
    NoticeKind.FIRED: "told_at",
    NoticeKind.RESOLVED: "resolve_told_at",
    NoticeKind.ESCALATED: "escalated_at",
}


def _note(rule: AlertRule, cluster_id: int, notice: Notice, now: datetime) -> bool:
    """Writes a notice with its deliveries; returns False where there is nobody to tell."""
    receivers = {one.pk: one for one in rule.channels.all()}
    if notice.kind == NoticeKind.ESCALATED:
        receivers = {}
    if notice.is_for_all:
        receivers |= {one.pk: one for one in rule.escalation_channels.all()}
    if not receivers and notice.kind == NoticeKind.FIRED:
        return False
    for start in range(0, len(notice.alerts), _BATCH):
        some = Alert.objects.filter(pk__in=notice.alerts[start : start + _BATCH])
        some.update(**{_TOLD_COLUMNS[notice.kind]: now})
    if not receivers:
        return False
    row = AlertNotice.objects.create(
        rule=rule, cluster_id=cluster_id, kind=notice.kind, rule_name=rule.name, made_at=now
    )
    through = AlertNotice.alerts.through
    through.objects.bulk_create(
        [through(alertnotice_id=row.pk, alert_id=pk) for pk in notice.alerts], batch_size=_BATCH
    )
    AlertDelivery.objects.bulk_create(
        [
            AlertDelivery(notice=row, channel=one, channel_name=one.name, due_at=now, made_at=now)
            for one in receivers.values()
        ]
    )
    return True


def publish_acknowledged(alert: Alert, *, is_so: bool, by: str, now: datetime) -> None:
    """Publishes that somebody looks after the alert, or does so no more."""
    _publish_changed([alert])
    turning = AlertTurning.ACKNOWLEDGED if is_so else AlertTurning.TAKEN_BACK
    turned = _turned(alert, alert.rule, turning, now, by)
    alerts_turned.send(sender=Alert, event=AlertsTurned(alert.cluster.name, [turned]))


def publish_deleted(firing: Sequence[Alert], now: datetime) -> None:
    """Publishes that what fires goes with its rule; the rule is there still."""
    _publish_changed(firing)
    _publish_turned([], firing, {alert.cluster_id: alert.cluster.name for alert in firing}, now)


def _publish_changed(alerts: Sequence[Alert]) -> None:
    by_cluster: dict[str, list[str]] = {}
    for alert in alerts:
        by_cluster.setdefault(alert.cluster.name, []).extend([alert.name] if alert.subject == Subject.GROUP else [])
    for cluster, groups in by_cluster.items():
        alerts_changed.send(sender=Alert, event=AlertsChanged(cluster, groups))
