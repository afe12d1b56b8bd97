from __future__ import annotations

from typing import Any

import pytest

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions.declaration import Undo
from remoting.wire.bodies.topics import TopicConfig
from tests.support.callers import caller
from tests.support.topic_brokers import TopicBrokers

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(autouse=True)
def orders(brokers: TopicBrokers) -> None:
    brokers["broker-a"].topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=3, order=True)
    brokers["broker-b"].topics["orders"] = TopicConfig(topic_name="orders", read_queue_nums=5)


def allow(person: Any, perm: Any, **values: Any) -> Result:
    result = runner.run(caller(person), "set_topic_permission", "prod", {"topic": "orders", "perm": perm, **values})
    assert isinstance(result, Result)
    return result


def test_the_permission_changes_and_the_queues_stay(brokers, ann) -> None:
    result = allow(ann, 4)
    assert {one.item: (one.before, one.after) for one in result.items} == {
        "broker-a": ({"perm": 6}, {"perm": 4}),
        "broker-b": ({"perm": 6}, {"perm": 4}),
    }
    made = brokers["broker-a"].topics["orders"]
    assert (made.perm, made.read_queue_nums, made.order) == (4, 3, True)
    assert brokers["broker-b"].topics["orders"].read_queue_nums == 5
    assert result.undo == Undo("set_topic_permission", {"topic": "orders", "perm": 6})


def test_on_one_broker_alone(brokers, ann) -> None:
    result = allow(ann, 2, brokers=["broker-b"])
    assert (brokers["broker-a"].topics["orders"].perm, brokers["broker-b"].topics["orders"].perm) == (6, 2)
    assert result.undo == Undo("set_topic_permission", {"topic": "orders", "perm": 6, "brokers": ["broker-b"]})


@pytest.mark.parametrize(("perm", "words"), [(4, "Producers are refused"), (2, "Consumers are refused")])
def test_the_preview_says_whom_it_stops(ann, perm: int, words: str) -> None:
    seen = runner.preview(caller(ann), "set_topic_permission", "prod", {"topic": "orders", "perm": perm})
    assert words in seen.warnings[0]


def test_a_topic_that_no_broker_has_is_not_created(brokers, ann) -> None:
    assert allow(ann, 4, topic="nothing").refusal == Refusal.RULE
    assert "nothing" not in brokers["broker-a"].topics


@pytest.mark.parametrize("perm", [0, 7, "", "all"])
def test_what_rocketmq_does_not_know_is_refused(ann, perm: Any) -> None:
    assert allow(ann, perm).refusal == Refusal.ARGUMENTS
