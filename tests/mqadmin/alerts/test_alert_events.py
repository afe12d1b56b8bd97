"""What becomes of alerts is told as events: each by itself, many of one cause as one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser

from mqadmin.alerts.evaluating import evaluate
from mqadmin.alerts.models import Alert, AlertRule, AlertSilence
from mqadmin.clusters.models import Cluster, Group
from mqadmin.events.models import Event
from mqadmin.events.receivers import ALERTS_APART_MAX, ALERTS_NAMED_MAX
from tests.mqadmin.alerts.conftest import make_rule
from tests.mqadmin.alerts.test_alert_actions import run
from tests.support import console_rows as seed

# Events are recorded once what they tell of is committed.
pytestmark = pytest.mark.django_db(transaction=True)


def told() -> list[tuple[str, str, int]]:
    rows = Event.objects.filter(kind="alert").order_by("pk")
    return [(row.group_name, row.data["what"], row.data["count"]) for row in rows]


def test_an_alert_is_told_when_it_fires_and_when_it_resolves_and_not_between(billing: Group, now: Any) -> None:
    make_rule(for_s=20, resolve_s=0)
    for look in range(4):
        evaluate(now + timedelta(seconds=10 * look))
    Group.objects.update(verdict="ok")
    evaluate(now + timedelta(seconds=40))
    evaluate(now + timedelta(seconds=50))
    assert told() == [("billing", "fired", 1), ("billing", "resolved", 1)]
    fired, resolved = Event.objects.filter(kind="alert").order_by("pk")
    assert fired.data["alerts"] == resolved.data["alerts"] == [Alert.objects.get().pk]
    assert (fired.data["rule"], fired.data["about"], fired.data["subject"]) == ("stalled", "verdict", "group")
    assert (fired.data["names"], fired.data["is_silenced"]) == (["billing"], False)
    assert fired.data["reading"]["verdict"] == "stalled"
    assert fired.at == now + timedelta(seconds=20)


@pytest.mark.slow
def test_two_thousand_that_begin_and_end_at_once_are_one_event_each(prod: Cluster, now: Any) -> None:
    seed.make_group(prod, "g", now=now, verdict="stopped", lag=1)
    pattern = Group.objects.get()
    rows = []
    for number in range(1999):
        pattern.pk, pattern.name = None, f"g{number:04}"
        rows.append(Group(**{field.attname: getattr(pattern, field.attname) for field in Group._meta.concrete_fields}))
    Group.objects.bulk_create(rows)
    make_rule(resolve_s=0)
    evaluate(now)
    assert told() == [("", "fired", 2000)]
    data = Event.objects.get(kind="alert").data
    assert (len(data["names"]), len(data["alerts"])) == (ALERTS_NAMED_MAX, ALERTS_NAMED_MAX)
    assert "reading" not in data
    Group.objects.update(verdict="ok")
    evaluate(now + timedelta(seconds=10))
    assert told()[1:] == [("", "resolved", 2000)]


def test_as_many_as_are_told_apart_and_one_more(prod: Cluster, now: Any) -> None:
    for number in range(ALERTS_APART_MAX):
        seed.make_group(prod, f"g{number:02}", now=now, verdict="stopped", lag=1)
    make_rule()
    evaluate(now)
    assert told() == [(f"g{number:02}", "fired", 1) for number in range(ALERTS_APART_MAX)]
    seed.make_group(prod, "late", now=now, verdict="stopped", lag=1)
    make_rule(name="another")
    Event.objects.all().delete()
    evaluate(now + timedelta(seconds=10))
    assert told() == [("late", "fired", 1), ("", "fired", ALERTS_APART_MAX + 1)]


def test_one_about_a_cluster_is_about_no_group(prod: Cluster, now: Any) -> None:
    make_rule(name="away", about="cluster", verdicts=[])
    Cluster.objects.update(state="unreachable", last_error="connection refused")
    evaluate(now)
    assert told() == [("", "fired", 1)]
    assert Event.objects.get(kind="alert").data["names"] == [""]


def test_one_that_is_silenced_says_so(prod: Cluster, billing: Group, now: Any) -> None:
    AlertSilence.objects.create(cluster=prod, name="deploy", names="bill*", starts_at=now, made_by="ann")
    make_rule()
    evaluate(now)
    assert [row.data["is_silenced"] for row in Event.objects.filter(kind="alert")] == [True]


def test_who_acknowledges_and_takes_that_back_is_told(ann: AbstractUser, billing: Group, now: Any) -> None:
    make_rule()
    evaluate(now)
    number = Alert.objects.get().pk
    run(ann, "acknowledge_alert", "prod", alert=number, note="restarting")
    run(ann, "acknowledge_alert", "prod", alert=number, acknowledged="no")
    assert [what for _group, what, _count in told()] == ["fired", "acknowledged", "taken_back"]
    assert [row.data["by"] for row in Event.objects.filter(kind="alert").order_by("pk")] == ["", "ann", "ann"]


@pytest.mark.parametrize("gone", ["rule paused", "rule deleted"])
def test_what_fired_resolves_with_its_rule(ann: AbstractUser, billing: Group, now: Any, gone: str) -> None:
    make_rule()
    evaluate(now)
    if gone == "rule paused":
        AlertRule.objects.update(is_running=False)
        evaluate(now + timedelta(seconds=10))
    else:
        run(ann, "delete_alert_rule", rule="stalled")
        assert not Alert.objects.exists()
    assert told() == [("billing", "fired", 1), ("billing", "resolved", 1)]
