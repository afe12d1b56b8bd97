"""What a broker asks of Apache's Java clients for a tool: resets, progress, running info, one message again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import Scene, bodies, plays
from tests.support.java_client import message_queue
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[..., Any]
# Client 4.9.8 lets a queue rest for 10 s and takes it again at its next rebalancing, every 20 s.
RESET_WITHIN_S = 50.0


def pairs(scene: Scene, told: Any) -> Any:
    """A map keyed by queues, by queue id."""
    return {queue["queue_id"]: value for queue, value in told}


def reset_of_a_running_group(scene: Scene) -> Any:
    java, group, topic = scene.java, scene.group(), scene.topic(queues=2)
    producer = scene.producer()
    name = scene.consumer(group, topic)
    scene.holds(name, topic, 2)
    for queue in range(2):
        java.send(producer, topic, body=f"{queue}-", count=3, queue=queue)
    java.wait_consumed(6, name)
    wait_until(lambda: sum(scene.committed(group, topic).values()) == 6, 20, "progress")
    told: dict[str, Any] = {"reset to": pairs(scene, java.admin_call("resetOffsetByTimestamp", topic, group, 0, True))}
    again = java.wait_consumed(12, name, within_s=RESET_WITHIN_S)
    told["again"] = sorted(bodies(again[6:]))
    wait_until(lambda: sum(scene.committed(group, topic).values()) == 6, RESET_WITHIN_S, "progress again")
    told["to now"] = pairs(
        scene, java.admin_call("resetOffsetByTimestamp", topic, group, int(time.time() * 1000) + 60_000, True)
    )
    return told


@plays(reset_of_a_running_group)
def test_a_running_group_that_is_reset_consumes_again(seen: Seen) -> None:
    told = seen()
    assert told["reset to"] == {0: 0, 1: 0}
    assert told["again"] == sorted(f"{queue}-{number}" for queue in range(2) for number in range(3))
    assert told["to now"] == {0: 3, 1: 3}


def reset_of_a_stopped_group(scene: Scene) -> Any:
    java, group, topic = scene.java, scene.group(), scene.topic()
    producer = scene.producer()
    java.send(producer, topic, body="m", count=4)
    first = scene.consumer(group, topic, "first")
    java.wait_consumed(4, first, within_s=40)
    scene.stop(first)

    def reset(timestamp: int, force: bool) -> Any:
        return scene.refusal(
            lambda: pairs(scene, java.admin_call("resetOffsetByTimestamp", topic, group, timestamp, force))
        )

    told: dict[str, Any] = {"reset": reset(0, True)}
    told["committed"] = scene.committed(group, topic)
    second = scene.consumer(group, topic, "second")
    java.wait_consumed(1, second)
    wait_until(lambda: len(java.consumed(second)) >= 4 or "code" in str(told["reset"]), 10, "all again")
    told["again"] = sorted(bodies(java.consumed(second)))
    unknown = scene.shared("nobody")
    told["unknown group"] = scene.refusal(
        lambda: pairs(scene, java.admin_call("resetOffsetByTimestamp", topic, unknown, 0, True))
    )
    told["unknown topic"] = scene.refusal(
        lambda: java.admin_call("resetOffsetByTimestamp", "no-such-topic", group, 0, True)
    )
    return told


@plays(reset_of_a_stopped_group)
def test_a_stopped_group_that_is_reset_begins_there(seen: Seen) -> None:
    told = seen()
    assert told["again"] == ["m0", "m1", "m2", "m3"]


def asked(scene: Scene) -> Any:
    java, group, topic = scene.java, scene.group(), scene.topic()
    producer, name = scene.producer(), scene.client("member")
    client_id = java.consumer(name, group, topic, outcomes={"later0": ["ok", "later"], "thrown0": ["ok", "throw"]})
    scene.holds(name, topic)
    sent = {word: java.send(producer, topic, body=word)[0] for word in ("fine", "later", "thrown")}
    java.wait_consumed(3, name)

    def directly(word: str, to: str = client_id) -> Any:
        msg_id = sent[word]["offset_msg_id"]
        result = scene.refusal(lambda: java.admin_call("consumeMessageDirectly", group, to, topic, msg_id))
        return {key: value for key, value in result.items() if key in ("consumeResult", "autoCommit", "order", "code")}

    info = java.admin_call("getConsumerRunningInfo", group, client_id, False)
    queues = info["mqTable"]
    status = java.admin_call("getConsumeStatus", topic, group, client_id)
    everybody = java.admin_call("getConsumeStatus", topic, group, "")
    return {
        "fine": directly("fine"),
        "later": directly("later"),
        "thrown": directly("thrown"),
        "at nobody": directly("fine", "nobody"),
        "deliveries": sorted(bodies(java.consumed(name))),
        "running info": {
            "queues": len(queues),
            "subscriptions": sorted(scene.plain(each["topic"]) for each in info["subscriptionSet"]),
            "type": info["properties"]["PROP_CONSUME_TYPE"],
            "threads": info["properties"]["PROP_CONSUMEORDERLY"],
        },
        "of nobody": scene.refusal(lambda: java.admin_call("getConsumerRunningInfo", group, "nobody", False)),
        "with its stacks": "CONSUME"
        in str(java.admin_call("getConsumerRunningInfo", group, client_id, True)["jstack"]).upper(),
        "status": [pairs(scene, table) for table in status.values()],
        "status of all": [pairs(scene, table) for table in everybody.values()],
        "status of nobody": scene.refusal(
            lambda: java.admin_call("getConsumeStatus", topic, scene.shared("nobody"), "")
        ),
    }


@plays(asked)
def test_a_member_answers_what_a_tool_asks_through_the_broker(seen: Seen) -> None:
    told = seen()
    assert told["fine"]["consumeResult"] == "CR_SUCCESS"
    assert told["later"]["consumeResult"] == "CR_LATER"
    assert told["thrown"]["consumeResult"] == "CR_THROW_EXCEPTION"
    assert told["deliveries"] == sorted(["fine0", "later0", "thrown0"] * 2)
    assert told["running info"]["subscriptions"] == ["%RETRY%group", "topic"]
    assert told["status"] == [{0: 3}]


def other_tools(scene: Scene) -> Any:
    """Progress written and reset by Apache's library."""
    java, group, topic = scene.java, scene.group(), scene.topic()
    producer = scene.producer()
    java.send(producer, topic, body="m", count=5)
    java.admin_call("updateConsumeOffset", scene.broker, group, message_queue(topic), 2)
    told: dict[str, Any] = {"written": scene.committed(group, topic)}
    old = java.admin_call("resetOffsetByTimestampOld", group, topic, 0, True)
    told["reset the old way"] = [
        {key: row[key] for key in ("queueId", "brokerOffset", "consumerOffset", "timestampOffset", "rollbackOffset")}
        for row in old
    ]
    told["then"] = scene.committed(group, topic)
    who = java.admin_call("queryTopicConsumeByWho", topic)
    told["who"] = sorted(scene.plain(each) for each in who["groupList"])
    return told


@plays(other_tools)
def test_tools_write_and_reset_progress(seen: Seen) -> None:
    told = seen()
    assert told["written"] == {0: 2}
    assert told["then"] == {0: 0}
    assert "group" in told["who"]


def one_queue_reset(scene: Scene) -> Any:
    java, group, topic = scene.java, scene.group(), scene.topic(queues=2)
    producer = scene.producer()
    for queue in range(2):
        java.send(producer, topic, body=f"{queue}-", count=3, queue=queue)
    name = scene.consumer(group, topic)
    java.wait_consumed(6, name)
    wait_until(lambda: sum(scene.committed(group, topic).values()) == 6, 20, "progress")

    def reset(queue: int, queue_offset: int, of: str = group) -> Any:
        asked = (scene.broker, of, topic, queue, queue_offset)
        return scene.refusal(lambda: java.admin_call("resetOffsetByQueueId", *asked))

    told: dict[str, Any] = {"reset": reset(1, 1)}
    again = java.wait_consumed(8, name)
    told["again"] = sorted(bodies(again[6:]))
    told["beyond the end"] = reset(1, 99)
    told["no such queue"] = reset(7, 0)
    told["unknown group"] = reset(0, 0, scene.shared("nobody"))
    return told


@plays(one_queue_reset, "5.4.0")
def test_one_queue_of_a_running_group_is_reset_to_an_offset(seen: Seen) -> None:
    # Apache keeps progress for queues that cannot be.
    told = seen(but={"no such queue": {"kind": "MQBrokerException", "code": 29}})
    assert told["again"] == ["1-1", "1-2"]
    assert told["no such queue"] is None


def skipped(scene: Scene) -> Any:
    """What waits is skipped by a time in the future, for a group that has never been online too."""
    java, group, topic = scene.java, scene.group(), scene.topic()
    producer = scene.producer()
    java.send(producer, topic, body="old-", count=4)
    java.admin_call("resetOffsetByTimestamp", topic, group, -1, True)
    told: dict[str, Any] = {"committed": scene.committed(group, topic)}
    name = scene.consumer(group, topic)
    scene.holds(name, topic)
    java.send(producer, topic, body="new-")
    java.wait_consumed(1, name)
    told["came"] = bodies(java.consumed(name))
    return told


@plays(skipped)
def test_what_waits_is_skipped(seen: Seen) -> None:
    told = seen()
    assert told["committed"] == {0: 4}
    assert told["came"] == ["new-0"]
