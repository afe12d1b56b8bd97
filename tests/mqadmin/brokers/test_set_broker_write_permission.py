from __future__ import annotations

from typing import Any

import pytest

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Refusal, Result
from mqadmin.actions.declaration import Undo
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode
from tests.support.callers import caller

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(autouse=True)
def _named_topic(brokers) -> None:
    """Apache's brokers have a topic of their own name, whose route tells."""
    brokers["broker-a"].topics["broker-a"] = TopicConfig(topic_name="broker-a")


def allow(person: Any, writing: Any, broker: str = "broker-a") -> Result:
    values = {"broker": broker, "writing": writing}
    result = runner.run(caller(person), "set_broker_write_permission", "prod", values)
    assert isinstance(result, Result)
    return result


def test_each_name_server_is_told(brokers, ann) -> None:
    brokers.answer_name_server(RequestCode.WIPE_WRITE_PERM_OF_BROKER, wipeTopicCount=1)
    result = allow(ann, False)
    assert [(one.item, one.state, one.before, one.after) for one in result.items] == [
        (f"namesrv {brokers.namesrv}", "done", {"writing": True}, {"writing": False})
    ]
    assert RequestCode.WIPE_WRITE_PERM_OF_BROKER in brokers.asked_of_name_server()
    assert result.undo == Undo("set_broker_write_permission", {"broker": "broker-a", "writing": True})


def test_what_is_so_already_is_left(brokers, ann) -> None:
    assert allow(ann, True).items[0].state == "unchanged"
    assert RequestCode.ADD_WRITE_PERM_OF_BROKER not in brokers.asked_of_name_server()


def test_without_a_route_it_is_not_known_before_and_told_all_the_same(brokers, ann) -> None:
    brokers["broker-a"].topics.clear()
    brokers.answer_name_server(RequestCode.ADD_WRITE_PERM_OF_BROKER, addTopicCount=0)
    result = allow(ann, True)
    assert (result.items[0].before, result.items[0].state, result.undo) == (None, "done", None)


def test_a_broker_that_is_not_there_is_refused(ann) -> None:
    assert allow(ann, False, broker="elsewhere").refusal == Refusal.RULE
