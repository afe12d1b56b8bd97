"""Deliveries against a real web server: signed, tried again, given up, handed out once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.test import Client

from mqadmin.alerts import delivering, tasks
from mqadmin.alerts.channels.webhook import signature
from mqadmin.alerts.delivering import DELIVERIES, PAUSES_S, deliver
from mqadmin.alerts.evaluating import evaluate
from mqadmin.alerts.models import Alert, AlertDelivery
from mqadmin.clusters.models import Cluster
from mqadmin.clusters.selectors.newest_first import read_cursor
from tests.mqadmin.alerts.conftest import Receiver, make_rule
from tests.support import console_rows as seed

pytestmark = pytest.mark.django_db


@pytest.fixture
def delivery(billing: Any, hook: Any, now: Any) -> AlertDelivery:
    make_rule(hook)
    evaluate(now)
    return AlertDelivery.objects.get()


def test_a_webhook_gets_the_alert_signed(delivery: AlertDelivery, receiver: Receiver, now: Any) -> None:
    ((pk, attempt),) = DELIVERIES.hand_out(now)
    assert deliver(pk, attempt, now) == "sent"
    ((path, headers, body),) = receiver.posts
    assert path == "/hook?key=very-secret"
    assert headers["X-Mqadmin-Delivery"] == str(delivery.key)
    assert headers["X-Mqadmin-Signature"] == signature("s3cret", int(headers["X-Mqadmin-Timestamp"]), body)
    (document,) = receiver.documents
    assert (document["kind"], document["rule"], document["cluster"]) == ("fired", "stalled", "prod")
    (alert,) = document["alerts"]
    assert alert["name"] == "billing"
    assert alert["words"].startswith("STALLED. Messages wait on a queue")
    assert alert["url"].startswith("http://127.0.0.1:8000/clusters/prod/groups/billing/lag/?range=1h&until=")


@pytest.mark.parametrize("about", ["broker", "cluster"])
def test_what_was_away_is_shown_in_the_timeline_of_its_cluster_at_that_time(
    prod: Any, now: Any, admin_client: Client, about: str
) -> None:
    make_rule(name="away", about=about, verdicts=[])
    prod.brokers.update(last_error="connection refused")
    Cluster.objects.update(state="unreachable")
    evaluate(now)
    address = delivering.place_of(Alert.objects.select_related("rule", "cluster").get())
    path, _, query = address.partition("?")
    assert path == "/clusters/prod/rebalances/"
    assert read_cursor(parse_qs(query)["before"][0]) == (now + timedelta(minutes=30), 0)
    later, then = now + timedelta(minutes=40), now - timedelta(minutes=1)
    group = seed.make_group(prod, "billing", now=now)
    seed.make_event(group, "joined", at=later, client_id="later@1")
    seed.make_event(group, "joined", at=then, client_id="then@1")
    page = admin_client.get(address).content.decode()
    assert ("then@1" in page, "later@1" in page) == (True, False)


@pytest.mark.parametrize(
    ("about", "subject"), [("disk", "broker"), ("scheduler", "broker"), ("cluster_verdict", "cluster")]
)
def test_what_has_no_curves_is_shown_in_the_timeline_at_that_time(
    prod: Any, now: Any, about: str, subject: str
) -> None:
    rule = make_rule(name="watched", about=about, verdicts=[], threshold=90)
    row = Alert(rule=rule, cluster=prod, subject=subject, name="broker-a", since=now, fired_at=now)
    path, _, query = delivering.place_of(row).partition("?")
    assert path == "/clusters/prod/rebalances/"
    assert read_cursor(parse_qs(query)["before"][0]) == (now + timedelta(minutes=30), 0)


def test_a_delivery_is_handed_out_once(delivery: AlertDelivery, now: Any) -> None:
    assert DELIVERIES.hand_out(now) == [(delivery.pk, 1)]
    assert DELIVERIES.hand_out(now) == []


def test_one_whose_worker_died_is_handed_out_again_and_the_late_attempt_does_nothing(
    delivery: AlertDelivery, receiver: Receiver, now: Any
) -> None:
    DELIVERIES.hand_out(now)
    later = now + delivering.CLAIMED_FOR
    assert DELIVERIES.hand_out(later) == [(delivery.pk, 2)]
    assert deliver(delivery.pk, 1, later) is None
    assert deliver(delivery.pk, 2, later) == "sent"
    assert deliver(delivery.pk, 2, later) is None
    assert len(receiver.posts) == 1


def test_what_fails_is_tried_again_with_growing_pauses_and_given_up(
    delivery: AlertDelivery, receiver: Receiver, now: Any
) -> None:
    receiver.answers = [(503, b"")]
    at, pauses = now, []
    while claimed := DELIVERIES.hand_out(at):
        deliver(*claimed[0], at)
        delivery.refresh_from_db()
        if delivery.state != "waiting":
            break
        pauses.append((delivery.due_at - at).total_seconds())
        assert DELIVERIES.hand_out(delivery.due_at - timedelta(seconds=1)) == []
        at = delivery.due_at
    assert pauses == list(PAUSES_S)
    assert (delivery.state, delivery.attempt_count) == ("failed", DELIVERIES.attempts_max)
    assert delivery.error == "it answered 503"
    assert len(receiver.posts) == DELIVERIES.attempts_max
    keys = {headers["X-Mqadmin-Delivery"] for _path, headers, _body in receiver.posts}
    assert keys == {str(delivery.key)}


def test_what_fails_for_a_while_arrives(delivery: AlertDelivery, receiver: Receiver, now: Any) -> None:
    receiver.answers = [(500, b""), (200, b"")]
    deliver(*DELIVERIES.hand_out(now)[0], now)
    later = now + timedelta(seconds=PAUSES_S[0])
    deliver(*DELIVERIES.hand_out(later)[0], later)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.error, delivery.attempt_count) == ("sent", "", 2)


def test_what_would_fail_again_is_given_up_at_once(delivery: AlertDelivery, receiver: Receiver, now: Any) -> None:
    receiver.answers = [(410, b"")]
    assert deliver(*DELIVERIES.hand_out(now)[0], now) == "failed"


def test_what_was_to_go_through_a_deleted_channel_is_given_up(delivery: AlertDelivery, hook: Any, now: Any) -> None:
    hook.delete()
    assert deliver(*DELIVERIES.hand_out(now)[0], now) == "failed"
    delivery.refresh_from_db()
    assert (delivery.error, delivery.channel_name) == ("the channel was deleted", "hook")


def test_a_channel_sealed_under_another_key_says_so(delivery: AlertDelivery, settings: Any, now: Any) -> None:
    settings.SECRET_KEY = "another"
    assert deliver(*DELIVERIES.hand_out(now)[0], now) == "failed"
    delivery.refresh_from_db()
    assert "set the channel again" in delivery.error


def test_no_error_and_no_log_has_the_address(
    delivery: AlertDelivery, receiver: Receiver, settings: Any, now: Any, caplog: Any
) -> None:
    receiver.answers = [(500, b"very-secret")]
    deliver(*DELIVERIES.hand_out(now)[0], now)
    settings.MQADMIN_ALERT_NETWORKS = ()
    later = now + timedelta(seconds=PAUSES_S[0])
    assert deliver(*DELIVERIES.hand_out(later)[0], later) == "failed", "loopback is refused"
    delivery.refresh_from_db()
    assert "127.0.0.1" in delivery.error
    assert "very-secret" not in delivery.error + caplog.text


def test_the_task_hands_out_and_delivers(delivery: AlertDelivery, receiver: Receiver, settings: Any) -> None:
    called: list[tuple[int, int]] = []

    def delay(pk: int, attempt: int) -> None:
        called.append((pk, attempt))

    original = tasks.deliver.delay
    tasks.deliver.delay = delay  # type: ignore[method-assign]
    try:
        tasks.hand_out_deliveries()
    finally:
        tasks.deliver.delay = original  # type: ignore[method-assign]
    assert called == [(delivery.pk, 1)]
    tasks.deliver(*called[0])
    assert len(receiver.posts) == 1
