"""The pages of alerts: what fires, the forms of rules and channels, and where a firing is shown elsewhere."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from mqadmin.alerts import sealing
from mqadmin.alerts.evaluating import evaluate
from mqadmin.alerts.models import Alert, AlertChannel, AlertRule
from tests.mqadmin.console.pages import text_of
from tests.support.people import give_session

SECRET_URL = "https://oapi.example.com/robot/send?access_token=very-secret"


@pytest.fixture
def firing(group: Any, now: Any) -> Alert:
    AlertRule.objects.create(name="stalled", about="verdict", verdicts=["stalled"], made_by="ann", made_at=now)
    evaluate(now)
    return Alert.objects.get()


@pytest.fixture
def channel(db: None, now: Any) -> AlertChannel:
    return AlertChannel.objects.create(
        name="chat",
        kind="dingtalk",
        sealed=sealing.seal({"url": SECRET_URL, "secret": "SECvery-secret"}),
        place="oapi.example.com",
        made_by="ann",
        made_at=now,
    )


def test_what_fires_stands_on_its_page_the_overview_and_the_groups(http: Client, firing: Alert) -> None:
    text = text_of(http.get("/alerts/"))
    assert "1 alert fires" in text
    assert "STALLED. Messages wait on a queue" in text
    assert "FIRING" in text_of(http.get("/"))
    assert "FIRING stalled" in " ".join(text_of(http.get("/clusters/local/groups/billing/")).split())


def test_a_firing_leads_to_the_curves_with_its_time_in_the_middle(http: Client, firing: Alert) -> None:
    fired_at = firing.fired_at
    assert fired_at is not None
    Alert.objects.update(fired_at=fired_at - timedelta(hours=3))
    (line,) = http.get("/alerts/").context["lines"]
    page = http.get(line.url)
    since, until = (datetime.fromisoformat(page.context[f"{one}_text"]) for one in ("since", "until"))
    assert since + (until - since) / 2 == (fired_at - timedelta(hours=3)).replace(tzinfo=None, microsecond=0)


def test_pages_without_anything_say_what_there_could_be(http: Client, cluster: Any) -> None:
    for address, words in (
        ("/alerts/", "All quiet"),
        ("/alerts/history/", "Nothing has fired yet"),
        ("/alerts/rules/", "No rule yet"),
        ("/alerts/channels/", "No channel yet"),
        ("/alerts/silences/", "No silence"),
        ("/alerts/deliveries/", "Nothing was told yet"),
    ):
        assert words in text_of(http.get(address)), address


def test_somebody_who_sees_another_cluster_sees_no_alert_of_this_one(
    firing: Alert, django_user_model: Any, db: None
) -> None:
    http = Client()
    give_session(http, django_user_model.objects.create_user("eve"))
    assert "billing" not in http.get("/alerts/").content.decode()
    assert "billing" not in http.get("/alerts/history/").content.decode()
    assert http.get("/alerts/channels/").status_code == 403
    assert http.get("/alerts/deliveries/").status_code == 403
    assert http.get("/alerts/rules/").status_code == 403


def test_a_viewer_is_offered_no_acknowledgement(firing: Alert, django_user_model: Any) -> None:
    viewer = django_user_model.objects.create_user("vic")
    viewer.user_permissions.add(Permission.objects.get(codename="view_cluster"))
    http = Client()
    give_session(http, viewer)
    page = http.get("/alerts/").content.decode()
    assert "billing" in page
    assert "/acknowledge/" not in page


def test_no_page_shows_a_channels_address(http: Client, channel: AlertChannel, cluster: Any) -> None:
    for address in (
        "/alerts/channels/",
        "/alerts/channels/chat/change/",
        "/alerts/channels/chat/test/",
        "/alerts/channels/chat/delete/",
        "/api/v1/alert-channels",
    ):
        page = http.get(address)
        assert page.status_code == 200, address
        assert "very-secret" not in page.content.decode(), address


def test_the_form_of_a_channel_posts_and_takes_no_secret_from_an_address(http: Client, cluster: Any) -> None:
    page = http.get("/alerts/channels/set/", {"channel": "c", "kind": "slack", "url": SECRET_URL})
    assert not page.context["form"]["url"].value()
    assert '<form class="action-form" method="post" id="ask"' in page.content.decode()
    answer = http.post("/alerts/channels/set/", {"channel": "c", "kind": "slack", "url": "ftp://very-secret"})
    assert answer.status_code == 422
    assert "very-secret" not in answer.content.decode()
    assert "it must begin with https://" in text_of(answer)
    answer = http.post("/alerts/channels/set/", {"channel": "c", "kind": "slack", "url": SECRET_URL, "key": "1"})
    assert answer.status_code == 302
    assert "very-secret" not in answer.headers["Location"]
    assert "very-secret" not in http.get(answer.headers["Location"]).content.decode()


def test_an_error_stands_at_its_field(http: Client, cluster: Any) -> None:
    page = http.get("/alerts/rules/set/", {"rule": "late", "about": "lag"})
    assert page.context["form"].errors["threshold"] == ["Say from how much on."]


def test_the_form_of_a_rule_starts_at_what_it_is(http: Client, firing: Alert) -> None:
    form = http.get("/alerts/rules/stalled/change/").context["form"]
    assert form["about"].value() == "verdict"
    assert form["verdicts"].value() == ["stalled"]


def test_the_verdict_of_a_cluster_fires_with_its_reason_and_leads_to_its_timeline(
    http: Client, group: Any, now: Any
) -> None:
    AlertRule.objects.create(name="clusters", about="cluster_verdict", verdicts=["stalled"], made_by="ann", made_at=now)
    evaluate(now)
    (line,) = http.get("/alerts/").context["lines"]
    assert (line.name, line.words) == ("local", "STALLED: 1 group STALLED.")
    assert line.url.startswith("/clusters/local/rebalances/?before=")
    assert "something in a cluster is STALLED" in text_of(http.get("/alerts/rules/"))
    (row,) = http.get("/api/v1/clusters/local/alerts?state=firing").json()["items"]
    assert (row["name"], row["about"], row["page"]) == ("", "cluster_verdict", line.url)
    assert row["reading"]["findings"] == [{"verdict": "stalled", "count": 1}]


def test_rest_lists_alerts_rules_silences_and_deliveries(http: Client, firing: Alert) -> None:
    (row,) = http.get("/api/v1/clusters/local/alerts?state=firing").json()["items"]
    assert (row["name"], row["rule"], row["state"]) == ("billing", "stalled", "firing")
    assert row["page"].startswith("/clusters/local/groups/billing/lag/?range=1h&until=")
    (rule,) = http.get("/api/v1/alert-rules").json()["items"]
    assert (rule["name"], rule["firing_count"]) == ("stalled", 1)
    assert http.get("/api/v1/clusters/local/silences").json()["items"] == []
    assert http.get("/api/v1/alert-deliveries").json()["items"] == []
    assert http.get("/api/v1/clusters/local/alerts?state=resolved").json()["items"] == []
