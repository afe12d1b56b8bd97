"""Rules, channels, silences and acknowledgement as actions: errors by argument, undo, and secrets that nobody sees."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser, Group

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.alerts import sealing
from mqadmin.alerts.evaluating import evaluate
from mqadmin.alerts.models import Alert, AlertChannel, AlertDelivery, AlertRule, AlertSilence
from mqadmin.audit.models import AuditEntry
from mqadmin.people.roles import Role
from tests.mqadmin.alerts.conftest import Receiver, make_rule
from tests.support.callers import caller

pytestmark = pytest.mark.django_db(transaction=True)
SECRET_URL = "https://oapi.example.com/robot/send?access_token=very-secret"


def run(person: Any, action: str, cluster: str = "", **values: Any) -> Result:
    result = runner.run(caller(person), action, cluster, values)
    assert isinstance(result, Result)
    return result


def set_rule(person: Any, **values: Any) -> Result:
    return run(person, "set_alert_rule", **{"rule": "late", "about": "lag", "threshold": 100, **values})


def set_channel(person: Any, **values: Any) -> Result:
    wanted = {"channel": "chat", "kind": "dingtalk", "url": SECRET_URL, "secret": "SECvery-secret"}
    return run(person, "set_alert_channel", **{**wanted, **values})


def take_back(person: Any, result: Result, cluster: str = "") -> None:
    assert result.undo is not None
    undone = run(person, result.undo.action, cluster, **result.undo.arguments)
    assert undone.outcome == "done", undone


def test_a_rule_is_made_changed_and_taken_back(ann: AbstractUser, hook: AlertChannel) -> None:
    made = set_rule(ann, channels=["hook"])
    row = AlertRule.objects.get()
    assert (made.outcome, row.threshold, row.made_by, row.is_running) == ("done", 100, "ann", True)
    assert [one.name for one in row.channels.all()] == ["hook"]
    changed = set_rule(ann, threshold=500, names="billing-*")
    row.refresh_from_db()
    assert (row.threshold, row.names, row.channels.count()) == (500, "billing-*", 0)
    take_back(ann, changed)
    row.refresh_from_db()
    assert (row.threshold, row.names, row.channels.count()) == (100, "*", 1)
    take_back(ann, made)
    assert not AlertRule.objects.exists()


@pytest.mark.parametrize(
    ("values", "argument"),
    [
        ({"threshold": 0}, "threshold"),
        ({"about": "disk", "threshold": 101}, "threshold"),
        ({"about": "weather"}, "about"),
        ({"rule": "a/b"}, "rule"),
        ({"about": "verdict", "verdicts": ["stalled", "partial"]}, "verdicts"),
        ({"about": "cluster_verdict", "verdicts": ["busy"]}, "verdicts"),
        ({"channels": ["nobody"]}, "channels"),
        ({"escalate_minutes": 5, "channels": ["hook"]}, "escalation_channels"),
        ({"escalate_minutes": 5, "escalation_channels": ["hook"]}, "channels"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_by_argument(
    ann: AbstractUser, hook: AlertChannel, values: dict[str, Any], argument: str
) -> None:
    result = set_rule(ann, **values)
    assert result.refusal == Refusal.ARGUMENTS
    assert set(result.errors) == {argument}
    assert not AlertRule.objects.exists()


def test_a_rule_on_verdicts_watches_the_worst_unless_others_are_chosen(ann: AbstractUser) -> None:
    set_rule(ann, about="verdict", threshold=0)
    assert AlertRule.objects.get().verdicts == ["stalled", "stopped"]
    set_rule(ann, about="verdict", threshold=0, verdicts=["slow"])
    assert AlertRule.objects.get().verdicts == ["slow"]
    set_rule(ann, about="cluster_verdict", threshold=0)
    worst = ["not_running", "partial", "stalled", "stopped", "unreachable"]
    assert AlertRule.objects.get().verdicts == worst
    changed = set_rule(ann, about="cluster_verdict", threshold=0, verdicts=["partial", "failing"])
    assert AlertRule.objects.get().verdicts == ["failing", "partial"]
    take_back(ann, changed)
    assert AlertRule.objects.get().verdicts == worst


def test_a_rule_is_paused_and_goes_on(ann: AbstractUser) -> None:
    set_rule(ann)
    paused = run(ann, "set_alert_rule_running", rule="late", running="no")
    assert not AlertRule.objects.get().is_running
    take_back(ann, paused)
    assert AlertRule.objects.get().is_running


def test_a_channels_address_is_sealed_and_in_no_audit(ann: AbstractUser) -> None:
    made = set_channel(ann)
    row = AlertChannel.objects.get()
    assert (made.outcome, row.place) == ("done", "oapi.example.com")
    assert sealing.opened(row.sealed) == {"url": SECRET_URL, "secret": "SECvery-secret"}
    set_channel(ann, url="no address, but very-secret")
    set_channel(ann, kind="weather")
    entries = list(AuditEntry.objects.values())
    assert len(entries) == 3
    assert "very-secret" not in json.dumps(entries, default=str)
    assert entries[0]["arguments"]["url"] == "…"
    take_back(ann, made)
    assert not AlertChannel.objects.exists()


def test_what_is_left_empty_stays(ann: AbstractUser) -> None:
    set_channel(ann)
    set_channel(ann, url="", secret="", language="zh-hans")
    row = AlertChannel.objects.get()
    assert row.language == "zh-hans"
    assert sealing.opened(row.sealed) == {"url": SECRET_URL, "secret": "SECvery-secret"}
    set_channel(ann, url="https://other.example.com/x", secret="")
    row.refresh_from_db()
    assert sealing.opened(row.sealed) == {"url": "https://other.example.com/x", "secret": "SECvery-secret"}


def test_another_kind_keeps_neither_address_nor_secret(ann: AbstractUser) -> None:
    set_channel(ann)
    assert set(set_channel(ann, kind="slack", url="", secret="").errors) == {"url"}
    set_channel(ann, kind="mail", url="", secret="", recipients="a@b.cn, c@d.cn")
    row = AlertChannel.objects.get()
    assert (row.sealed, row.recipients) == ("", "a@b.cn c@d.cn")


@pytest.mark.parametrize(
    ("values", "argument"),
    [
        ({"url": "ftp://a/b"}, "url"),
        ({"url": "https://user:word@a/"}, "url"),
        ({"kind": "mail", "url": "", "recipients": ""}, "recipients"),
        ({"kind": "mail", "url": "", "recipients": "ann"}, "recipients"),
        ({"language": "fr"}, "language"),
    ],
)
def test_a_channel_that_cannot_be_is_refused_by_argument(
    ann: AbstractUser, values: dict[str, Any], argument: str
) -> None:
    assert set(set_channel(ann, **values).errors) == {argument}


def test_a_test_says_what_came_of_it(ann: AbstractUser, hook: AlertChannel, receiver: Receiver) -> None:
    assert run(ann, "send_test_alert", channel="hook").outcome == "done"
    assert receiver.documents[0]["kind"] == "test"
    receiver.answers = [(503, b"")]
    result = run(ann, "send_test_alert", channel="hook")
    assert (result.outcome, result.items[0].words) == ("failed", "it answered 503")
    assert list(AlertDelivery.objects.order_by("pk").values_list("state", flat=True)) == ["sent", "failed"]


def test_a_test_to_this_machine_is_refused_unless_it_is_allowed(
    ann: AbstractUser, hook: AlertChannel, receiver: Receiver, settings: Any
) -> None:
    settings.MQADMIN_ALERT_NETWORKS = ()
    result = run(ann, "send_test_alert", channel="hook")
    assert result.outcome == "failed"
    assert "MQADMIN_ALERT_NETWORKS" in result.items[0].words
    assert not receiver.posts


def test_an_alert_is_acknowledged_with_a_note_and_that_is_taken_back(ann: AbstractUser, billing: Any, now: Any) -> None:
    make_rule()
    evaluate(now)
    alert = Alert.objects.get()
    done = run(ann, "acknowledge_alert", "prod", alert=alert.pk, note="restarting")
    alert.refresh_from_db()
    assert (alert.acknowledged_by, alert.acknowledged_note) == ("ann", "restarting")
    assert alert.acknowledged_at is not None
    take_back(ann, done, "prod")
    alert.refresh_from_db()
    assert (alert.acknowledged_at, alert.acknowledged_by, alert.acknowledged_note) == (None, "", "")


def test_what_has_resolved_or_is_elsewhere_is_not_acknowledged(ann: AbstractUser, billing: Any, now: Any) -> None:
    make_rule()
    evaluate(now)
    Alert.objects.update(state="resolved")
    for number in (Alert.objects.get().pk, 999):
        assert set(run(ann, "acknowledge_alert", "prod", alert=number).errors) == {"alert"}


def test_a_silence_is_added_and_ended(ann: AbstractUser, prod: Any) -> None:
    added = run(
        ann,
        "add_silence",
        "prod",
        silence="nights",
        weekdays=["sat", "sun"],
        from_time="22:00",
        to_time="06:00",
        zone="Asia/Shanghai",
        minutes=0,
    )
    row = AlertSilence.objects.get()
    assert (row.weekdays, row.from_minute, row.to_minute, row.ends_at) == ([5, 6], 1320, 360, None)
    take_back(ann, added, "prod")
    assert not AlertSilence.objects.exists()


@pytest.mark.parametrize(
    ("values", "argument"),
    [
        ({"minutes": 0}, "minutes"),
        ({"zone": "Mars/Olympus"}, "zone"),
        ({"from_time": "25:00"}, "from_time"),
        ({"weekdays": ["someday"]}, "weekdays"),
    ],
)
def test_a_silence_that_cannot_be_is_refused_by_argument(
    ann: AbstractUser, prod: Any, values: dict[str, Any], argument: str
) -> None:
    assert set(run(ann, "add_silence", "prod", silence="s", **values).errors) == {argument}


def test_operators_change_rules_and_administrators_channels(django_user_model: Any, prod: Any) -> None:
    bob = django_user_model.objects.create_user("bob")
    bob.groups.add(Group.objects.get_or_create(name=Role.OPERATOR)[0])
    from mqadmin.people.access import sync_groups

    sync_groups()
    bob = django_user_model.objects.get(pk=bob.pk)
    assert set_rule(bob).outcome == "done"
    assert set_channel(bob).refusal == Refusal.PERMISSION
    assert "very-secret" not in json.dumps(list(AuditEntry.objects.values()), default=str)
