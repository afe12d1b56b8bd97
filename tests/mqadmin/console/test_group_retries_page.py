"""A group's tab "Retries", and the attempts on a dead letter's page."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from mqadmin.clusters.models import Cluster, Group
from mqadmin.console.views import group as group_views
from mqadmin.deadletters.models import DeadLetter
from mqadmin.observing.gateway import RetriesOnBroker, RetryQueue
from mqadmin.retries import standing
from mqadmin.retries.models import DelayQueue, FailedAttempt
from mqadmin.retries.standing import DueMessage, Standing
from tests.mqadmin.console.pages import text_of
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message
from tests.support.delay_queues import retried

ADDRESS = "/clusters/local/groups/billing/retries"


@pytest.fixture
def attempts(cluster: Cluster, group: Group, now: datetime) -> None:
    seed.make_failed_attempts(cluster, "billing", now=now)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message is with a member; members have messages retried 16 times."""
    due = retried(7, topic="%RETRY%billing", queue_id=0, attempt=2, properties={"RETRY_TOPIC": "<orders>"})
    on_broker = RetriesOnBroker((RetryQueue(7, 8, 8, (due,)),), dict.fromkeys(range(1, 19), 99))
    found = Standing((DueMessage("broker-a", due, True),), 1, (16,), {"broker-a": on_broker})
    monkeypatch.setattr(standing, "standing_of", lambda *_: found)
    assert group_views.standing is standing


def test_the_page_says_what_waits_until_when_and_what_became_of_the_others(
    http: Client, attempts: None, answered: None
) -> None:
    page = http.get(f"{ADDRESS}/")
    said = text_of(page)
    assert "3 messages wait for their next attempt, the first of them in" in said
    assert "1 is due and not consumed yet." in said
    assert "A message has 17 attempts, as the members say" in said
    assert "WITH A MEMBER" in said
    assert "PAST IT" in said
    assert "PaymentTimeout the gateway did not answer" in said
    assert "14 of 17" in said
    assert said.count("WAITING") == 3
    assert b"<orders>" not in page.content


def test_without_an_answer_it_says_so(http: Client, attempts: None, cluster: Cluster) -> None:
    Cluster.objects.update(namesrv="127.0.0.1:1")
    cluster.brokers.update(address="127.0.0.1:1")
    DelayQueue.objects.create(
        cluster=cluster, topic_name="T", broker_name="broker-b", queue_id=0, skipped_count=1234, problem="not readable"
    )
    said = text_of(http.get(f"{ADDRESS}/"))
    for words in ("127.0.0.1:1", "UNKNOWN", "not readable", "1,234 delayed messages of this cluster"):
        assert words in said


def test_a_group_without_retries_says_so(http: Client, group: Group, answered: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(standing, "standing_of", lambda *_: Standing())
    assert "No message waits to be retried." in text_of(http.get(f"{ADDRESS}/"))
    assert http.get("/clusters/local/groups/nowhere/retries/").status_code == 404


def test_older_attempts_are_behind_a_link(http: Client, attempts: None, answered: None, now: datetime) -> None:
    one = FailedAttempt.objects.first()
    assert one is not None
    for number in range(60):
        one.pk, one.queue_offset, one.message_id = None, 100 + number, f"M{number}"
        one.failed_at = now - timedelta(hours=1, seconds=number)
        one.save()
    page = http.get(f"{ADDRESS}/")
    older = page.context["older_url"]
    assert older
    rows = http.get(f"{ADDRESS}/{older}").context["rows"]
    assert rows[-1][0].message_id == "M59"


def test_rest_lists_them_and_says_where_they_stand(http: Client, attempts: None, monkeypatch: Any) -> None:
    answer = http.get(f"/api/v1{ADDRESS}").json()
    assert len(answer["items"]) == 6
    first = answer["items"][0]
    assert (first["attempt_count"], first["keys"], first["origin_topic"]) == (12, ["order-0"], "orders")
    assert len(http.get(f"/api/v1{ADDRESS}?waiting=true").json()["items"]) == 3
    due = retried(7, topic="%RETRY%billing", queue_id=0, attempt=2)
    found = Standing((DueMessage("broker-a", due, None),), 1, (16,))
    monkeypatch.setattr("mqadmin.api.views.retries.standing_of", lambda *_: found)
    told = http.get(f"/api/v1{ADDRESS}/standing").json()
    assert (told["waiting_count"], told["due_count"], told["attempts_max"]) == (3, 1, 17)
    assert told["due"][0]["message_id"] == "UNIQ7"
    assert told["due"][0]["is_with_member"] is None
    assert http.get("/api/v1/clusters/local/groups/nowhere/retries").status_code == 404


def test_a_dead_letter_shows_the_attempts_that_led_to_it(
    http: Client, attempts: None, cluster: Cluster, now: datetime
) -> None:
    one = FailedAttempt.objects.get(queue_offset=5)
    died = round(now.timestamp() * 1000)
    dead = dead_message(0, properties={"UNIQ_KEY": one.message_id}, store_timestamp_ms=died)
    seed.make_dead_letters(cluster, "billing", [dead], now=now)
    number = DeadLetter.objects.get().pk
    said = text_of(http.get(f"/clusters/local/deadletters/{number}/"))
    assert (
        "attempt 6 failed: PaymentTimeout: the gateway did not answer within 20 s; the next one came 4 m 00 s later"
        in said
    )
    (attempt,) = http.get(f"/api/v1/clusters/local/dead-letters/{number}").json()["attempts"]
    assert attempt["attempt_count"] == 6
