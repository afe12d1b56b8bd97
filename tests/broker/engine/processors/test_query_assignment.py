"""Rebalance by the broker: the same queues as by the client's own strategy, and no POP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.engine.groups.request_modes import RequestModes
from broker.engine.processors.message_request_mode import GetAllMessageRequestMode, SetMessageRequestMode
from broker.engine.processors.query_assignment import QueryAssignment
from remoting.allocation import allocate
from remoting.wire.bodies.heartbeat import ConsumerData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts, Wire, save_topic

MEMBERS = ["a@1", "b@1", "c@1"]


@pytest.fixture
async def parts(tmp_path: Path):
    parts = BrokerParts(tmp_path / "store")
    save_topic(parts.topics, TopicConfig(topic_name="orders", read_queue_nums=8))
    for member in MEMBERS:
        command = Command(code=RequestCode.HEART_BEAT)
        data = ConsumerData(group_name="billing")
        parts.members.register_consumer(command, Wire(), member, data, keeps_subscriptions=False)
    yield parts
    parts.close()


def query(parts: BrokerParts, **changes) -> object:
    """What is assigned: queue ids, or None when the answer has no list."""
    body = {
        "topic": "orders",
        "consumerGroup": "billing",
        "clientId": "b@1",
        "strategyName": "AVG",
        "messageModel": "CLUSTERING",
        **changes,
    }
    processor = QueryAssignment(parts.topics, parts.members, parts.config.name)
    command = Command(code=RequestCode.QUERY_ASSIGNMENT, body=json.dumps(body).encode())
    answer = parts.ask(processor, command)
    assert answer.code == ResponseCode.SUCCESS
    found = json.loads(answer.body).get("messageQueueAssignments")
    if found is None:
        return None
    assert {one["mode"] for one in found} <= {"PULL"}
    assert {(one["messageQueue"]["topic"], one["messageQueue"]["brokerName"]) for one in found} <= {
        (body["topic"], "broker-a")
    }
    return [one["messageQueue"]["queueId"] for one in found]


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
def test_an_assignment_is_what_the_clients_own_strategy_gives(parts, strategy) -> None:
    queues = [MessageQueue("orders", "broker-a", number) for number in range(8)]
    for member in MEMBERS:
        own = sorted(queue.queue_id for queue in allocate(strategy, queues, MEMBERS, member))
        assert query(parts, clientId=member, strategyName=strategy) == own


def test_a_broadcasting_client_is_assigned_every_queue(parts) -> None:
    assert query(parts, messageModel="BROADCASTING", clientId="x@1") == list(range(8))


def test_who_is_no_member_is_assigned_nothing(parts) -> None:
    assert query(parts, clientId="stranger@1") == []


@pytest.mark.parametrize(
    "changes",
    [{"topic": "missing"}, {"consumerGroup": "nobody"}, {"strategyName": "CONSISTENT_HASH"}, {"strategyName": None}],
    ids=["unknown topic", "nobody online", "unknown strategy", "no strategy"],
)
def test_a_client_keeps_what_it_has_where_no_answer_is_known(parts, changes) -> None:
    assert query(parts, **changes) is None


def test_an_assignment_query_that_cannot_be_read_is_refused(parts) -> None:
    processor = QueryAssignment(parts.topics, parts.members, parts.config.name)
    answer = parts.ask(processor, Command(code=RequestCode.QUERY_ASSIGNMENT, body=b"no json"))
    assert answer.code == ResponseCode.SYSTEM_ERROR


# modes


def set_mode(parts: BrokerParts, modes: RequestModes, **changes) -> Command:
    body = {"topic": "orders", "consumerGroup": "billing", "mode": "PULL", "popShareQueueNum": 0, **changes}
    processor = SetMessageRequestMode(parts.topics, parts.groups, modes)
    return parts.ask(processor, Command(code=RequestCode.SET_MESSAGE_REQUEST_MODE, body=json.dumps(body).encode()))


def test_a_mode_is_kept(parts, tmp_path) -> None:
    modes = RequestModes(tmp_path, parts.complaints)
    assert set_mode(parts, modes).code == ResponseCode.SUCCESS

    again = RequestModes(tmp_path, parts.complaints)
    again.load()
    answer = parts.ask(GetAllMessageRequestMode(again), Command(code=RequestCode.GET_ALL_MESSAGE_REQUEST_MODE))
    assert json.loads(answer.body) == {
        "messageRequestModeMap": {
            "orders": {
                "billing": {"topic": "orders", "consumerGroup": "billing", "mode": "PULL", "popShareQueueNum": 0}
            }
        }
    }


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"mode": "POP"}, ResponseCode.NO_PERMISSION, "no POP"),
        ({"topic": "%RETRY%billing"}, ResponseCode.NO_PERMISSION, "retry topic"),
        ({"topic": "missing"}, ResponseCode.TOPIC_NOT_EXIST, "missing"),
        ({"consumerGroup": "an illegal group"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "group"),
    ],
    ids=["POP", "a retry topic", "a missing topic", "a group that may not be"],
)
def test_a_mode_is_refused_for(parts, tmp_path, changes, code, words) -> None:
    modes = RequestModes(tmp_path, parts.complaints)
    answer = set_mode(parts, modes, **changes)
    assert answer.code == code
    assert words in answer.remark
    assert modes.table.message_request_mode_map == {}
