"""Looks at rows: what fires once, resolves, is told; however often workers end and begin."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mqadmin.alerts import evaluating
from mqadmin.alerts.conditions import About
from mqadmin.alerts.evaluating import evaluate
from mqadmin.alerts.models import Alert, AlertDelivery, AlertNotice, AlertSilence, AlertTurn
from mqadmin.alerts.sentences import what_words
from mqadmin.clusters.models import Group
from mqadmin.deadletter_rules.models import DeadLetterRule, RaisedFailure
from mqadmin.deadletters.models import Failure
from tests.mqadmin.alerts.conftest import make_rule
from tests.support import console_rows as seed

pytestmark = pytest.mark.django_db


def states() -> list[tuple[str, str]]:
    return list(Alert.objects.order_by("name", "pk").values_list("name", "state"))


def kinds() -> list[str]:
    return list(AlertNotice.objects.order_by("pk").values_list("kind", flat=True))


def test_a_group_that_stalls_fires_once_and_resolves_when_it_is_well(billing: Group, hook: Any, now: Any) -> None:
    make_rule(hook, resolve_s=0)
    for look in range(3):
        assert evaluate(now + timedelta(seconds=10 * look))
    assert states() == [("billing", "firing")]
    assert kinds() == ["fired"]
    assert AlertDelivery.objects.count() == 1
    Group.objects.update(verdict="ok")
    evaluate(now + timedelta(seconds=40))
    assert states() == [("billing", "resolved")]
    assert kinds() == ["fired", "resolved"]


def test_it_fires_anew_after_it_resolved(billing: Group, hook: Any, now: Any) -> None:
    make_rule(hook, resolve_s=0)
    for look, verdict in enumerate(("stalled", "ok", "stalled")):
        Group.objects.update(verdict=verdict)
        evaluate(now + timedelta(seconds=10 * look))
    assert states() == [("billing", "resolved"), ("billing", "firing")]


def test_pending_until_it_has_held(billing: Group, hook: Any, now: Any) -> None:
    make_rule(hook, for_s=20)
    evaluate(now)
    assert states() == [("billing", "pending")]
    assert kinds() == []
    evaluate(now + timedelta(seconds=20))
    assert states() == [("billing", "firing")]
    assert kinds() == ["fired"]


def test_what_was_pending_and_does_not_hold_is_gone(billing: Group, now: Any) -> None:
    make_rule(for_s=60)
    evaluate(now)
    Group.objects.update(verdict="ok")
    evaluate(now + timedelta(seconds=10))
    assert states() == []


def test_a_pause_of_all_workers_neither_fires_twice_nor_forgets(billing: Group, hook: Any, now: Any) -> None:
    make_rule(hook, for_s=20)
    evaluate(now)
    evaluate(now + timedelta(hours=1))
    assert states() == [("billing", "pending")], "what was pending began anew"
    evaluate(now + timedelta(hours=1, seconds=20))
    evaluate(now + timedelta(hours=3))
    assert states() == [("billing", "firing")]
    assert kinds() == ["fired"]


def test_a_worker_that_died_in_a_look_holds_the_turn_no_longer_than_a_minute(billing: Group, now: Any) -> None:
    make_rule()
    AlertTurn.objects.create(taken_until=now + timedelta(seconds=60))
    assert not evaluate(now)
    assert states() == []
    assert evaluate(now + timedelta(seconds=60))
    assert states() == [("billing", "firing")]


def test_a_look_that_fails_leaves_everything_as_it_was(billing: Group, hook: Any, now: Any, monkeypatch: Any) -> None:
    make_rule(hook)

    def fails(*_: Any) -> bool:
        raise RuntimeError("the power went")

    monkeypatch.setattr(evaluating, "_note", fails)
    with pytest.raises(RuntimeError):
        evaluate(now)
    assert states() == []
    monkeypatch.undo()
    evaluate(now + timedelta(seconds=10))
    assert states() == [("billing", "firing")]
    assert kinds() == ["fired"]


def test_many_groups_of_one_cause_are_one_notice(prod: Any, billing: Group, hook: Any, now: Any) -> None:
    for number in range(30):
        seed.make_group(prod, f"g{number}", now=now, verdict="stopped", lag=1)
    make_rule(hook)
    evaluate(now)
    assert kinds() == ["fired"]
    assert AlertNotice.objects.get().alerts.count() == 31
    seed.make_group(prod, "late", now=now, verdict="stopped", lag=1)
    evaluate(now + timedelta(seconds=30))
    assert kinds() == ["fired"]
    evaluate(now + timedelta(minutes=5))
    assert kinds() == ["fired", "fired"]


def test_a_cluster_that_is_away_says_so_once_and_its_groups_keep_still(prod: Any, billing: Group, now: Any) -> None:
    make_rule()
    make_rule(name="away", about="cluster", verdicts=[])
    type(prod).objects.update(state="unreachable", last_error="connection refused")
    evaluate(now)
    assert [(one.rule.name, one.name) for one in Alert.objects.all()] == [("away", "")]
    assert Alert.objects.get().reading == {"error": "connection refused"}


def test_the_verdict_of_a_cluster_fires_once_and_says_all(prod: Any, billing: Group, hook: Any, now: Any) -> None:
    make_rule(hook, name="prod", about="cluster_verdict", verdicts=["stalled", "partial"], resolve_s=0)
    evaluate(now)
    (alert,) = Alert.objects.all()
    assert (alert.name, alert.subject, alert.state) == ("", "cluster", "firing")
    assert what_words(About.CLUSTER_VERDICT, alert.reading) == "STALLED: 1 group STALLED."
    prod.brokers.update(last_error="connection refused")
    evaluate(now + timedelta(seconds=10))
    alert.refresh_from_db()
    assert what_words(About.CLUSTER_VERDICT, alert.reading) == "STALLED: 1 group STALLED, 1 broker away."
    Group.objects.update(verdict="ok")
    evaluate(now + timedelta(seconds=20))
    alert.refresh_from_db()
    assert what_words(About.CLUSTER_VERDICT, alert.reading) == "PARTIAL: 1 broker away."
    prod.brokers.update(last_error="")
    evaluate(now + timedelta(seconds=30))
    assert states() == [("", "resolved")]
    assert kinds() == ["fired", "resolved"]


def test_the_verdict_of_a_cluster_that_is_away_is_not_known_unless_that_is_watched(
    prod: Any, billing: Group, now: Any
) -> None:
    make_rule(name="groups", about="cluster_verdict", verdicts=["stalled"], resolve_s=0)
    make_rule(name="all", about="cluster_verdict", verdicts=["stalled", "unreachable"], resolve_s=0)
    evaluate(now)
    type(prod).objects.update(state="unreachable", last_error="connection refused")
    evaluate(now + timedelta(seconds=10))
    readings = {one.rule.name: (one.state, one.reading["verdict"]) for one in Alert.objects.select_related("rule")}
    assert readings == {"groups": ("firing", "stalled"), "all": ("firing", "unreachable")}


def test_patterns_choose_clusters_and_groups(prod: Any, billing: Group, now: Any) -> None:
    other = seed.make_cluster("test", now=now)
    for cluster in (prod, other):
        seed.make_group(cluster, "mail-out", now=now, verdict="stalled", lag=1)
    make_rule(clusters="pr*", names="mail-*")
    evaluate(now)
    assert [(one.cluster.name, one.name) for one in Alert.objects.all()] == [("prod", "mail-out")]


@pytest.mark.parametrize("gone", ["rule paused", "group deleted", "pattern changed"])
def test_what_is_not_watched_any_more_resolves(billing: Group, now: Any, gone: str) -> None:
    rule = make_rule()
    evaluate(now)
    match gone:
        case "rule paused":
            rule.is_running = False
            rule.save()
        case "group deleted":
            billing.delete()
        case "pattern changed":
            rule.names = "orders"
            rule.save()
    evaluate(now + timedelta(seconds=10))
    assert states() == [("billing", "resolved")]


def test_during_a_silence_it_fires_and_nobody_is_told_until_it_ends(billing: Group, hook: Any, now: Any) -> None:
    make_rule(hook)
    AlertSilence.objects.create(
        cluster=billing.cluster, name="deploy", starts_at=now, ends_at=now + timedelta(minutes=10), made_by="ann"
    )
    evaluate(now)
    assert states() == [("billing", "firing")]
    assert Alert.objects.get().is_silenced
    assert kinds() == []
    evaluate(now + timedelta(minutes=10))
    assert not Alert.objects.get().is_silenced
    assert kinds() == ["fired"]


def test_what_nobody_acknowledges_is_told_to_others(billing: Group, hook: Any, now: Any) -> None:
    rule = make_rule(hook, escalate_minutes=5, resolve_s=0)
    boss = type(hook).objects.create(name="boss", kind="mail", recipients="a@b.cn", made_by="ann", made_at=now)
    rule.escalation_channels.set([boss])
    evaluate(now)
    evaluate(now + timedelta(minutes=5))
    evaluate(now + timedelta(minutes=6))
    assert kinds() == ["fired", "escalated"]
    Group.objects.update(verdict="ok")
    evaluate(now + timedelta(minutes=20))
    told = AlertDelivery.objects.order_by("pk").values_list("notice__kind", "channel_name")
    assert list(told) == [("fired", "hook"), ("escalated", "boss"), ("resolved", "hook"), ("resolved", "boss")]


def test_who_escalates_to_others_has_told_the_rules_own_receivers_nothing(billing: Group, hook: Any, now: Any) -> None:
    rule = make_rule(hook, escalate_minutes=6)
    rule.escalation_channels.set(
        [type(hook).objects.create(name="boss", kind="mail", recipients="a@b.cn", made_by="ann", made_at=now)]
    )
    evaluate(now)
    evaluate(now + timedelta(minutes=6))
    seed.make_group(billing.cluster, "shipping", now=now, verdict="stalled")
    evaluate(now + timedelta(minutes=7))
    told = AlertDelivery.objects.order_by("pk").values_list("notice__kind", "channel_name")
    assert list(told) == [("fired", "hook"), ("escalated", "boss"), ("fired", "hook")]


def test_what_somebody_acknowledged_is_not_told_to_others(billing: Group, hook: Any, now: Any) -> None:
    rule = make_rule(hook, escalate_minutes=5)
    rule.escalation_channels.set([hook])
    evaluate(now)
    Alert.objects.update(acknowledged_at=now)
    evaluate(now + timedelta(minutes=6))
    assert kinds() == ["fired"]


def test_a_rule_without_channels_fires_on_the_pages_alone(billing: Group, now: Any) -> None:
    make_rule()
    evaluate(now)
    assert states() == [("billing", "firing")]
    assert kinds() == []


def test_failure_that_a_rule_for_dead_letters_raised_fires_until_it_is_archived(
    prod: Any, billing: Group, now: Any
) -> None:
    moments = {"first_dead_at": now, "last_dead_at": now}
    failures = [
        Failure.objects.create(cluster=prod, group_name="billing", identity=identity, **moments) for identity in "ab"
    ]
    rules = [
        DeadLetterRule.objects.create(
            cluster=prod, name=name, group_name="billing", does="raise", acts_for="ann", made_at=now
        )
        for name in ("first", "second")
    ]
    make_rule(name="raised", about="raised", verdicts=[])
    evaluate(now)
    assert states() == []
    for rule, failure, dead_count in (
        (rules[0], failures[0], 3),
        (rules[1], failures[0], 2),
        (rules[0], failures[1], 7),
    ):
        RaisedFailure.objects.create(rule=rule, failure=failure, raised_at=now, last_at=now, dead_count=dead_count)
    evaluate(now + timedelta(seconds=10))
    alert = Alert.objects.get()
    assert (alert.name, alert.state, alert.reading) == ("billing", "firing", {"value": 2, "dead": 10})
    assert what_words("raised", alert.reading) == "Rules for dead letters show 2 failures; dead of them: 10."
    Failure.objects.update(archived_at=now)
    evaluate(now + timedelta(seconds=20))
    assert states() == [("billing", "resolved")]


def test_broker_scheduler_and_disk_are_read(prod: Any, now: Any) -> None:
    from mqadmin.metrics.models import BrokerRuntime

    broker = prod.brokers.get()
    broker.scheduler_driver = ""
    broker.save()
    BrokerRuntime.objects.create(broker=broker, figures={"commitLogDiskRatio": "0.91"}, seen_at=now)
    make_rule(name="late", about="scheduler", verdicts=[], threshold=30)
    make_rule(name="full", about="disk", verdicts=[], threshold=90)
    make_rule(name="away", about="broker", verdicts=[])
    evaluate(now)
    assert set(Alert.objects.values_list("rule__name", flat=True)) == {"late", "full"}
    broker.last_error = "connection refused"
    broker.save()
    evaluate(now + timedelta(seconds=10))
    firing = Alert.objects.filter(state="firing").values_list("rule__name", flat=True)
    assert set(firing) == {"late", "full", "away"}, "what is not known stays as it was"


def test_the_number_of_queries_does_not_grow_with_groups(prod: Any, billing: Group, hook: Any, now: Any) -> None:
    make_rule(hook)
    make_rule(name="dead", about="dead_letters", verdicts=[], threshold=1, window_minutes=15)
    make_rule(name="conflict", about="conflict", verdicts=[])
    make_rule(name="cluster", about="cluster_verdict")

    def queries(at: Any) -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            evaluate(at)
        return len(captured)

    evaluate(now)
    few = queries(now + timedelta(seconds=10))
    for number in range(60):
        seed.make_group(prod, f"g{number}", now=now, lag=1)
    assert queries(now + timedelta(seconds=20)) == few
