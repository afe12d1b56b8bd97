from __future__ import annotations

from typing import Any

import pytest

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.audit.models import AuditEntry
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode
from tests.support.callers import caller
from tests.support.group_brokers import GroupBrokers

pytestmark = pytest.mark.usefixtures("cluster")

RETRY, DEAD = "%RETRY%billing", "%DLQ%billing"


@pytest.fixture(autouse=True)
def billing(brokers: GroupBrokers) -> None:
    for name in ("broker-a", "broker-b"):
        broker = brokers[name]
        broker.groups["billing"] = SubscriptionGroupConfig(group_name="billing")
        broker.topics = {topic: TopicConfig(topic_name=topic) for topic in (RETRY, DEAD)}
        broker.lag, broker.message_count = {"billing": 1500}, 2


def delete(person: Any, **how: Any) -> Result:
    values = {"group": "billing", **how.pop("values", {})}
    result = runner.run(caller(person), "delete_group", "prod", values, **{"confirmation": "billing", **how})
    assert isinstance(result, Result)
    return result


def test_brokers_forget_settings_progress_and_retries_and_dead_letters_stay(brokers, ann) -> None:
    result = delete(ann)
    assert {one.item: one.state for one in result.items} == {"broker-a": "done", "broker-b": "done"}
    for name in ("broker-a", "broker-b"):
        broker = brokers[name]
        assert (broker.groups, list(broker.topics), broker.offsets_cleaned) == ({}, [DEAD], ["billing"])
    assert RequestCode.DELETE_TOPIC_IN_NAMESRV in brokers.asked_of_name_server()
    entry = AuditEntry.objects.get()
    assert (entry.outcome, entry.undo) == ("done", None)
    assert (entry.before["broker-a"]["lag"], entry.before["broker-a"]["dead_letters"]) == (1500, 2)


def test_dead_letters_go_when_that_is_asked_for(brokers, ann) -> None:
    assert delete(ann, values={"dead_letters": True}).outcome == "done"
    assert not brokers["broker-a"].topics


def test_the_preview_says_what_is_lost_and_who_is_online(brokers, ann) -> None:
    brokers["broker-a"].members = ["10.0.0.1@7"]
    seen = runner.preview(caller(ann), "delete_group", "prod", {"group": "billing", "dead_letters": True})
    assert seen.changes[0].before["members"] == ["10.0.0.1@7"]
    words = " ".join(seen.warnings)
    assert "1 member is online: with its next heartbeat it may bring the group back" in words
    assert "3,000 messages are not consumed yet. The group's progress is lost." in words
    assert "4 dead letters are deleted." in words


def test_more_lag_leaves_the_preview_true_and_another_member_does_not(brokers, ann) -> None:
    seen = runner.preview(caller(ann), "delete_group", "prod", {"group": "billing"})
    brokers["broker-a"].members = ["10.0.0.1@7"]
    assert delete(ann, fingerprint=seen.fingerprint).refusal == Refusal.STALE
    seen = runner.preview(caller(ann), "delete_group", "prod", {"group": "billing"})
    brokers["broker-a"].lag = {"billing": 9}
    assert delete(ann, fingerprint=seen.fingerprint).outcome == "done"


def test_the_name_must_be_typed(brokers, ann) -> None:
    assert delete(ann, confirmation="bill").refusal == Refusal.CONFIRMATION
    assert brokers["broker-a"].groups


def test_while_a_broker_keeps_it_the_routes_stay(brokers, ann) -> None:
    brokers["broker-b"].refusal = "not now"
    result = delete(ann)
    assert (result.outcome, {one.item: one.state for one in result.items}) == (
        "partial",
        {"broker-a": "done", "broker-b": "failed"},
    )
    assert RequestCode.DELETE_TOPIC_IN_NAMESRV not in brokers.asked_of_name_server()
    assert RETRY in brokers["broker-b"].topics


def test_a_group_that_no_broker_has_is_refused(ann) -> None:
    result = runner.run(caller(ann), "delete_group", "prod", {"group": "nobody"}, confirmation="nobody")
    assert isinstance(result, Result)
    assert result.refusal == Refusal.RULE
