"""What a broker asks of Apache's Java clients for a tool: resets, progress, running info, one message again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, bodies, compares
from tests.support.java_client import message_queue
from tests.support.reading import wait_stored
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[..., Any]
# Client 4.9.8 lets a queue rest for 10 s and takes it again at its next rebalancing, every 20 s.
RESET_WITHIN_S = 150.0


def pairs(run: ScenarioRun, observed: Any) -> Any:
    """A map keyed by queues, by queue id."""
    return {queue["queue_id"]: value for queue, value in observed}


def reset_of_a_running_group(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic(queues=2)
    producer = run.producer()
    name = run.consumer(group, topic)
    run.wait_for_queues(name, topic, 2)
    for queue in range(2):
        java.send(producer, topic, body=f"{queue}-", count=3, queue=queue)
    java.wait_consumed(6, name)
    wait_until(lambda: sum(run.committed(group, topic).values()) == 6, what="progress")
    observed: dict[str, Any] = {
        "reset to": pairs(run, java.admin_call("resetOffsetByTimestamp", topic, group, 0, True))
    }
    again = java.wait_consumed(12, name, within_s=RESET_WITHIN_S)
    observed["again"] = sorted(bodies(again[6:]))
    wait_until(lambda: sum(run.committed(group, topic).values()) == 6, RESET_WITHIN_S, "progress again")
    observed["to now"] = pairs(
        run, java.admin_call("resetOffsetByTimestamp", topic, group, int(time.time() * 1000) + 60_000, True)
    )
    return observed


@compares(reset_of_a_running_group)
def test_a_running_group_that_is_reset_consumes_again(seen: Seen) -> None:
    observed = seen()
    assert observed["reset to"] == {0: 0, 1: 0}
    assert observed["again"] == sorted(f"{queue}-{number}" for queue in range(2) for number in range(3))
    assert observed["to now"] == {0: 3, 1: 3}


def reset_of_a_stopped_group(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    java.send(producer, topic, body="m", count=4)
    first = run.consumer(group, topic, "first")
    java.wait_consumed(4, first)
    run.stop(first)

    def reset(timestamp: int, force: bool) -> Any:
        return run.refusal(
            lambda: pairs(run, java.admin_call("resetOffsetByTimestamp", topic, group, timestamp, force))
        )

    observed: dict[str, Any] = {"reset": reset(0, True)}
    observed["committed"] = run.committed(group, topic)
    second = run.consumer(group, topic, "second")
    java.wait_consumed(1, second)
    wait_until(lambda: len(java.consumed(second)) >= 4 or "code" in str(observed["reset"]), what="all again")
    observed["again"] = sorted(bodies(java.consumed(second)))
    unknown = run.shared("nobody")
    observed["unknown group"] = run.refusal(
        lambda: pairs(run, java.admin_call("resetOffsetByTimestamp", topic, unknown, 0, True))
    )
    observed["unknown topic"] = run.refusal(
        lambda: java.admin_call("resetOffsetByTimestamp", "no-such-topic", group, 0, True)
    )
    return observed


@compares(reset_of_a_stopped_group)
def test_a_stopped_group_that_is_reset_begins_there(seen: Seen) -> None:
    observed = seen()
    assert observed["again"] == ["m0", "m1", "m2", "m3"]


def asked(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic()
    producer, name = run.producer(), run.client("member")
    client_id = java.consumer(name, group, topic, outcomes={"later0": ["ok", "later"], "thrown0": ["ok", "throw"]})
    run.wait_for_queues(name, topic)
    run.wait_for_queues(name, f"%RETRY%{group}")
    sent = {word: java.send(producer, topic, body=word)[0] for word in ("fine", "later", "thrown")}
    java.wait_consumed(3, name)
    # A message is consumed before its offset counts.
    all_three = [{0: len(sent)}]

    def progress(of: str) -> Any:
        status = java.admin_call("getConsumeStatus", topic, group, of)
        return [pairs(run, table) for table in status.values()]

    wait_until(lambda: progress(client_id) == all_three, what="progress")

    def directly(word: str, to: str = client_id) -> Any:
        msg_id = sent[word]["offset_msg_id"]
        result = run.refusal(lambda: java.admin_call("consumeMessageDirectly", group, to, topic, msg_id))
        return {key: value for key, value in result.items() if key in ("consumeResult", "autoCommit", "order", "code")}

    info = java.running_info(group, client_id)
    queues = info["mqTable"]
    return {
        "fine": directly("fine"),
        "later": directly("later"),
        "thrown": directly("thrown"),
        "at nobody": directly("fine", "nobody"),
        "deliveries": sorted(bodies(java.consumed(name))),
        "running info": {
            "queues": len(queues),
            "subscriptions": sorted(run.normalized(each["topic"]) for each in info["subscriptionSet"]),
            "type": info["properties"]["PROP_CONSUME_TYPE"],
            "threads": info["properties"]["PROP_CONSUMEORDERLY"],
        },
        "of nobody": run.refusal(lambda: java.admin_call("getConsumerRunningInfo", group, "nobody", False)),
        "with its stacks": "CONSUME" in java.running_info(group, client_id, with_stacks=True)["jstack"].upper(),
        # Whoever does not answer the broker within 5 s is left out.
        "status": wait_until(lambda: progress(client_id), what="the member's status"),
        "status of all": wait_until(lambda: progress(""), what="the status of all"),
        "status of nobody": run.refusal(lambda: java.admin_call("getConsumeStatus", topic, run.shared("nobody"), "")),
    }


@compares(asked)
def test_a_member_answers_what_a_tool_asks_through_the_broker(seen: Seen) -> None:
    observed = seen()
    assert observed["fine"]["consumeResult"] == "CR_SUCCESS"
    assert observed["later"]["consumeResult"] == "CR_LATER"
    assert observed["thrown"]["consumeResult"] == "CR_THROW_EXCEPTION"
    assert observed["deliveries"] == sorted(["fine0", "later0", "thrown0"] * 2)
    assert observed["running info"]["subscriptions"] == ["%RETRY%group", "topic"]
    assert observed["status"] == [{0: 3}]


def other_tools(run: ScenarioRun) -> Any:
    """Progress written and reset by Apache's library."""
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    java.send(producer, topic, body="m", count=5)
    wait_stored(run.broker, topic, 5)
    java.admin_call("updateConsumeOffset", run.broker, group, message_queue(topic), 2)
    observed: dict[str, Any] = {"written": run.committed(group, topic)}
    old = java.admin_call("resetOffsetByTimestampOld", group, topic, 0, True)
    observed["reset the old way"] = [
        {key: row[key] for key in ("queueId", "brokerOffset", "consumerOffset", "timestampOffset", "rollbackOffset")}
        for row in old
    ]
    observed["then"] = run.committed(group, topic)
    who = java.admin_call("queryTopicConsumeByWho", topic)
    observed["who"] = sorted(run.normalized(each) for each in who["groupList"])
    return observed


@compares(other_tools)
def test_tools_write_and_reset_progress(seen: Seen) -> None:
    observed = seen()
    assert observed["written"] == {0: 2}
    assert observed["then"] == {0: 0}
    assert "group" in observed["who"]


def one_queue_reset(run: ScenarioRun) -> Any:
    java, group, topic = run.java, run.group(), run.topic(queues=2)
    producer = run.producer()
    for queue in range(2):
        java.send(producer, topic, body=f"{queue}-", count=3, queue=queue)
    name = run.consumer(group, topic)
    java.wait_consumed(6, name)
    wait_until(lambda: sum(run.committed(group, topic).values()) == 6, what="progress")

    def reset(queue: int, queue_offset: int, of: str = group) -> Any:
        asked = (run.broker, of, topic, queue, queue_offset)
        return run.refusal(lambda: java.admin_call("resetOffsetByQueueId", *asked))

    observed: dict[str, Any] = {"reset": reset(1, 1)}
    again = java.wait_consumed(8, name)
    observed["again"] = sorted(bodies(again[6:]))
    observed["beyond the end"] = reset(1, 99)
    observed["no such queue"] = reset(7, 0)
    observed["unknown group"] = reset(0, 0, run.shared("nobody"))
    return observed


@compares(one_queue_reset, "5.4.0")
def test_one_queue_of_a_running_group_is_reset_to_an_offset(seen: Seen) -> None:
    # Apache keeps progress for queues that cannot be.
    observed = seen(but={"no such queue": {"kind": "MQBrokerException", "code": 29}})
    assert observed["again"] == ["1-1", "1-2"]
    assert observed["no such queue"] is None


def skipped(run: ScenarioRun) -> Any:
    """What waits is skipped by a time in the future, for a group that has never been online too."""
    java, group, topic = run.java, run.group(), run.topic()
    producer = run.producer()
    java.send(producer, topic, body="old-", count=4)
    wait_stored(run.broker, topic, 4)
    java.admin_call("resetOffsetByTimestamp", topic, group, -1, True)
    observed: dict[str, Any] = {"committed": run.committed(group, topic)}
    name = run.consumer(group, topic)
    run.wait_for_queues(name, topic)
    java.send(producer, topic, body="new-")
    java.wait_consumed(1, name)
    observed["came"] = bodies(java.consumed(name))
    return observed


@compares(skipped)
def test_what_waits_is_skipped(seen: Seen) -> None:
    observed = seen()
    assert observed["committed"] == {0: 4}
    assert observed["came"] == ["new-0"]
