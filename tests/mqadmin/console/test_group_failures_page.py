from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from consumer.models import MessageFailure
from mqadmin.clusters.models import Cluster, Group, Member
from mqadmin.deadletters import failing
from mqadmin.metrics.models import FRESH_FOR, MemberFigures
from mqadmin.observing.gateway import MemberStatus
from remoting.wire.failures import LatestFailure
from tests.mqadmin.console.pages import names_in, text_of

ADDRESS = "/clusters/local/groups/billing"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, group: Group) -> None:
    failure = LatestFailure(
        topic="orders", message_id="A1", failed_ms=1_700_000_000_000, exception="shop.errors.Late", text="<gateway>"
    )
    status = MemberStatus({}, "the breaker is open since 12:00", (failure,), tells_failures=True)

    def answer(_: Cluster, __: str, members: Any) -> failing.StatusAnswers:
        return failing.StatusAnswers((failing.StatusAnswer(members[0], status),), 21, {"broker-b": "no answer"})

    monkeypatch.setattr(failing, "members_told", answer)


def test_the_page_shows_what_members_tell_and_what_the_runtime_kept(
    http: Client, cluster: Cluster, told: None, now: datetime, settings: Any
) -> None:
    settings.MQADMIN_NAMESRV = cluster.namesrv
    MessageFailure.objects.create(
        group="billing", message_id="A2", topic="orders", exception="KeyError", attempt=2, failed_at=now
    )
    page = http.get(f"{ADDRESS}/failures/")
    assert names_in(page) == ["A1", "A2"]
    said = text_of(page)
    for words in (
        "Late <gateway>",
        "It consumes nothing now: the breaker is open since 12:00",
        "KeyError",
        "no answer",
    ):
        assert words in said
    assert "1 member has suspended its consumption. 1 member tells of messages that failed." in said
    assert b"<gateway>" not in page.content


def test_rest_has_the_same(http: Client, cluster: Cluster, told: None, now: datetime, settings: Any) -> None:
    settings.MQADMIN_NAMESRV = cluster.namesrv
    MessageFailure.objects.create(
        group="billing", message_id="A2", topic="orders", exception="KeyError", attempt=2, failed_at=now
    )
    (row,) = http.get(f"/api/v1{ADDRESS}/failures").json()["items"]
    assert (row["message_id"], row["exception"], row["attempt"]) == ("A2", "KeyError", 2)
    answer = http.get(f"/api/v1{ADDRESS}/latest-failures").json()
    (item,) = answer["items"]
    assert (item["client_id"], item["status"]["suspended"]) == ("10.0.3.7@2211#1", "the breaker is open since 12:00")
    assert item["status"]["failures"][0]["failed_at"].startswith("2023-11-14T22:13:20")
    assert (answer["total_count"], answer["failures"]) == (21, {"broker-b": "no answer"})
    assert http.get("/api/v1/clusters/local/groups/nowhere/failures").status_code == 404


def test_older_failures_are_behind_a_link(
    http: Client, cluster: Cluster, told: None, now: datetime, settings: Any
) -> None:
    settings.MQADMIN_NAMESRV = cluster.namesrv
    kept = {"group": "billing", "topic": "orders", "exception": "KeyError", "attempt": 1, "failed_at": now}
    MessageFailure.objects.bulk_create(MessageFailure(**kept, message_id=f"M{number}") for number in range(51))
    older = re.search(r'href="(\?before=[^"]+)"', http.get(f"{ADDRESS}/failures/").content.decode())
    assert older is not None
    assert names_in(http.get(f"{ADDRESS}/failures/{older[1]}")) == ["A1", "M0"]


def test_without_members_and_failures_the_page_says_so(http: Client, cluster: Cluster, group: Group) -> None:
    Member.objects.all().delete()
    assert "No member is online to be asked." in text_of(http.get(f"{ADDRESS}/failures/"))


def test_a_member_that_is_suspended_is_named_on_the_groups_page_while_that_is_fresh(
    http: Client, group: Group, now: datetime
) -> None:
    figures = MemberFigures.objects.create(member=group.members.get(), suspended="the breaker is open", seen_at=now)
    assert "10.0.3.7@2211#1 has suspended its consumption: the breaker is open" in text_of(http.get(f"{ADDRESS}/"))
    figures.seen_at = now - 2 * FRESH_FOR
    figures.save()
    assert "has suspended" not in text_of(http.get(f"{ADDRESS}/members/"))
