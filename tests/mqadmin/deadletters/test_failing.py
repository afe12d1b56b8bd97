"""What fails before it is dead: the runtime's table, and what members tell."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from consumer.models import MessageFailure
from mqadmin.clusters.models import Cluster, Member
from mqadmin.deadletters import failing
from remoting.connection import Connection
from remoting.wire.bodies.running_info import PROP_SUSPENDED, ConsumerRunningInfo, write_running_info
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.failures import LATEST_FAILURES, LatestFailure, write_latest
from tests.support import console_rows as seed
from tests.support.plans import prefer_indexes
from tests.support.topic_brokers import TopicBrokers

pytestmark = pytest.mark.django_db
RUNNING_INFO = RequestCode.GET_CONSUMER_RUNNING_INFO
TOLD = LatestFailure(topic="orders", message_id="A1", failed_ms=1_700_000_000_000, exception="KeyError", text="'id'")


def make_failure(message_id: str, at: datetime, **fields: Any) -> None:
    values = {"cluster": "", "group": "billing", "topic": "orders", "exception": "KeyError", "attempt": 1, **fields}
    MessageFailure.objects.create(message_id=message_id, failed_at=at, **values)


def members(prod: Cluster, now: datetime, *client_ids: str) -> list[Member]:
    group = seed.make_group(prod, "billing", now=now)
    return [seed.make_member(group, client_id, now=now, known_by=["broker-a"]) for client_id in client_ids]


def test_the_table_is_read_newest_first_for_the_cluster_that_the_settings_name(
    prod: Cluster, now: datetime, settings: Any
) -> None:
    make_failure("A1", now - timedelta(seconds=1))
    make_failure("A2", now)
    make_failure("A3", now, group="mail")
    make_failure("A4", now, cluster="payments")
    settings.MQADMIN_NAMESRV = prod.namesrv
    assert [row.message_id for row in failing.message_failures(prod, "billing").after(None, 10)] == ["A2", "A1"]
    settings.MQADMIN_NAMESRV = "10.9.9.9:9876"
    assert failing.message_failures(prod, "billing").after(None, 10) == []


def test_an_index_serves_the_list(prod: Cluster, settings: Any) -> None:
    settings.MQADMIN_NAMESRV = prod.namesrv
    prefer_indexes()
    plan = failing.message_failures(prod, "billing").rows.order_by("-failed_at", "-pk")[:50].explain()
    assert "mq_failure_of_group" in plan
    assert "TEMP B-TREE" not in plan


def test_members_tell_what_failed_there_and_why_they_consume_nothing(
    prod: Cluster, now: datetime, brokers: TopicBrokers
) -> None:
    asked = members(prod, now, "ours", "java", "hangs")
    answers = {
        "ours": {PROP_SUSPENDED: "the breaker is open", LATEST_FAILURES: write_latest([TOLD])},
        "java": {"PROP_CLIENT_VERSION": "V5_3_1"},
    }

    def answer(_: Connection, request: Command) -> Command:
        properties = answers.get(request.ext_fields["clientId"])
        if properties is None:
            return response(request, ResponseCode.SYSTEM_ERROR, "not online")
        body = write_running_info(ConsumerRunningInfo(properties=properties))
        return response(request, ResponseCode.SUCCESS, body=body)

    brokers["broker-a"].server.answers[RUNNING_INFO] = answer
    told = failing.members_told(prod, "billing", asked)
    ours, java, hangs = told.members
    assert ours.status is not None
    assert java.status is not None
    assert (ours.status.suspended, ours.status.failures) == ("the breaker is open", (TOLD,))
    assert (java.status.tells_failures, java.status.failures) == (False, ())
    assert hangs.status is None
    assert told.total_count == 3


def test_only_the_first_members_are_asked(prod: Cluster, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing, "MEMBERS_ASKED_MAX", 1)
    told = failing.members_told(prod, "billing", members(prod, now, "a", "b"))
    assert ([one.member.client_id for one in told.members], told.total_count) == (["a"], 2)
