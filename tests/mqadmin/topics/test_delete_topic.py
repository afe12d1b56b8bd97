from __future__ import annotations

from typing import Any

import pytest

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions.declaration import ActionRefused, Preview
from mqadmin.audit.models import AuditEntry
from mqadmin.producers.models import SeenProducer
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from tests.support.callers import caller
from tests.support.topic_brokers import TopicBrokers

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(autouse=True)
def orders(brokers: TopicBrokers) -> None:
    """On both brokers, with messages and readers."""
    for broker in brokers.brokers.values():
        broker.topics["orders"] = TopicConfig(topic_name="orders")
        broker.message_count = 600
        broker.lag = {"billing": 40, "index": 0}


def delete(person: Any, topic: str = "orders", **how: Any) -> Result:
    result = runner.run(caller(person), "delete_topic", "prod", {"topic": topic}, confirmation=topic, **how)
    assert isinstance(result, Result)
    return result


def preview(person: Any) -> Preview[Any]:
    return runner.preview(caller(person), "delete_topic", "prod", {"topic": "orders"})


def test_brokers_forget_it_and_then_the_name_server(brokers, ann) -> None:
    result = delete(ann)
    assert result.outcome == "done"
    assert [one.item for one in result.items] == ["broker-a", "broker-b", f"namesrv {brokers.namesrv}"]
    assert not brokers["broker-a"].topics
    assert brokers.asked_of_name_server()[-1] == RequestCode.DELETE_TOPIC_IN_NAMESRV
    entry = AuditEntry.objects.get()
    assert entry.before["broker-a"]["messages"] == 600
    assert entry.before["broker-a"]["groups"] == ["billing", "index"]
    assert entry.after == {item: {} for item in entry.before}
    assert entry.undo is None


def test_the_preview_says_what_is_lost_and_who_reads_it(brokers, ann) -> None:
    brokers["broker-a"].producers = {"shop": ["10.0.0.7@1", "10.0.0.8@1"]}
    brokers["broker-b"].producers = {"shop": ["10.0.0.7@1"], "web": ["10.0.0.9@1"]}
    messages, billing, index, anew, senders = preview(ann).warnings
    assert "1,200 messages" in messages
    assert "billing reads it and never gets the 80 messages" in billing
    assert "index reads it and has consumed all" in index
    assert "creates it anew" in anew
    assert senders == "Connected to its brokers now, and perhaps sending to it: shop (2), web (1)."
    assert not SeenProducer.objects.exists(), "a preview writes nothing"
    assert brokers["broker-a"].topics


def test_the_preview_does_not_call_nobody_known_nobody_there(brokers, ann) -> None:
    for broker in brokers.brokers.values():
        broker.server.refuse(RequestCode.GET_ALL_PRODUCER_INFO, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    senders = [one for one in preview(ann).warnings if "roducer" in one]
    assert [one.partition(" ")[0] for one in senders] == ["broker-a", "broker-b"]
    assert all("cannot list its producers" in one for one in senders)


def test_more_messages_leave_the_preview_true_and_another_reader_does_not(brokers, ann) -> None:
    seen = preview(ann).fingerprint
    brokers["broker-a"].message_count += 1
    brokers["broker-a"].lag["billing"] += 1
    assert preview(ann).fingerprint == seen
    brokers["broker-a"].lag["audit"] = 0
    assert delete(ann, fingerprint=seen).refusal == Refusal.STALE
    assert brokers["broker-a"].topics


def test_the_name_must_be_typed(brokers, ann) -> None:
    result = runner.run(caller(ann), "delete_topic", "prod", {"topic": "orders"}, confirmation="order")
    assert isinstance(result, Result)
    assert result.refusal == Refusal.CONFIRMATION
    assert brokers["broker-a"].topics


def test_the_route_stays_while_a_broker_has_it(brokers, ann) -> None:
    brokers["broker-b"].refusal = "read only"
    result = delete(ann)
    assert result.outcome == "partial"
    assert [one.state for one in result.items] == ["done", "failed", "skipped"]
    assert RequestCode.DELETE_TOPIC_IN_NAMESRV not in brokers.asked_of_name_server()
    brokers["broker-b"].refusal = ""
    assert delete(ann).outcome == "done"


def test_a_broker_that_does_not_answer_may_have_it(brokers, ann) -> None:
    brokers.vanish("broker-b")
    result = delete(ann)
    assert [(one.state, one.before is None) for one in result.items] == [
        ("done", False),
        ("failed", True),
        ("skipped", False),
    ]


def test_one_that_is_gone_is_refused_in_words(brokers, ann) -> None:
    delete(ann)
    with pytest.raises(ActionRefused, match="any more"):
        preview(ann)
    assert delete(ann).refusal == Refusal.RULE


@pytest.mark.parametrize("topic", ["TBW102", "RMQ_SYS_TRANS_HALF_TOPIC", "DefaultCluster", "broker-b"])
def test_rocketmqs_own_are_refused(brokers, ann, topic: str) -> None:
    brokers["broker-a"].topics[topic] = TopicConfig(topic_name=topic)
    assert delete(ann, topic).refusal == Refusal.RULE
    assert topic in brokers["broker-a"].topics


def test_dead_letters_may_be_deleted(brokers, ann) -> None:
    brokers["broker-a"].topics["%DLQ%billing"] = TopicConfig(topic_name="%DLQ%billing")
    assert delete(ann, "%DLQ%billing").outcome == "done"


def test_without_the_right_nothing_is_asked(brokers, django_user_model) -> None:
    result = delete(django_user_model.objects.create_user("bob"))
    assert result.refusal == Refusal.PERMISSION
    assert not brokers.asked_of_name_server()
